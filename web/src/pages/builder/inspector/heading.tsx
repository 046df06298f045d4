import { type ReactNode, useState } from "react";
import { useEditor, useReadOnly } from "@/pages/builder/state";
import { idPattern } from "@/shared/workflow/model";
import { Field, TextInput } from "@/ui/field";
import { useProblem } from "./form/context";

export interface HeadingProps {
	/** The node: a step by its id, a trigger by `@id`. */
	node: string;
	id: string;
	pointer: string;
	/** Absent for nodes without a name. */
	name?: string;
	named?: boolean;
	children?: ReactNode;
}

/** Heading edits the name and id of a step or trigger. */
export function Heading({ node, id, pointer, name, named = false, children }: HeadingProps) {
	const editor = useEditor();
	const problem = useProblem(`${pointer}/name`, true);
	return (
		<div className="flex flex-col gap-4 p-4">
			{children}
			<div className={named ? "grid grid-cols-[3fr_2fr] gap-3" : undefined}>
				{named && (
					<div data-pointer={`${pointer}/name`}>
						<Field label="Name" error={problem}>
							<TextInput
								value={name ?? ""}
								placeholder={id}
								maxLength={200}
								onChange={(event) => editor.setField(`${pointer}/name`, event.target.value || undefined)}
							/>
						</Field>
					</div>
				)}
				<IdField key={id} node={node} id={id} pointer={pointer} />
			</div>
		</div>
	);
}

/** IdField renames on blur, because every keystroke would rewrite all references. */
function IdField({ node, id, pointer }: { node: string; id: string; pointer: string }) {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const [text, setText] = useState(id);
	const problem = useProblem(`${pointer}/id`, true);
	const wrong = idPattern.test(text) ? undefined : "Use lowercase letters, digits and _. Start with a letter.";
	const commit = () => {
		if (text === id || wrong) setText(id);
		else if (editor.renameNode(node, text).rejected) setText(id);
	};
	return (
		<div data-pointer={`${pointer}/id`}>
			<Field label="ID" error={wrong ?? problem}>
				<TextInput
					value={text}
					readOnly={readOnly}
					spellCheck={false}
					className="font-mono text-12"
					onChange={(event) => setText(event.target.value)}
					onBlur={commit}
					onKeyDown={(event) => {
						if (event.key === "Enter") commit();
						if (event.key === "Escape") setText(id);
					}}
				/>
			</Field>
		</div>
	);
}
