import { type ReactNode, useState } from "react";
import { idPattern } from "@/builder/model";
import { useEditor, useFixed } from "@/builder/state";
import { Field, TextInput } from "@/ui/field";
import { useProblem } from "./form/context";

export interface HeadingProps {
	/** The node: a step by its id, a trigger by `@id`. */
	node: string;
	id: string;
	pointer: string;
	/** Absent for what has no name of its own. */
	name?: string;
	named?: boolean;
	children?: ReactNode;
}

/** Heading is what a step or a trigger is called, by people and by other steps. */
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

/** IdField renames when it is left, since every letter would rewrite all that refers to the step. */
function IdField({ node, id, pointer }: { node: string; id: string; pointer: string }) {
	const editor = useEditor();
	const fixed = useFixed();
	const [text, setText] = useState(id);
	const problem = useProblem(`${pointer}/id`, true);
	const wrong = idPattern.test(text) ? undefined : "A letter a-z, then up to 62 of a-z, 0-9 and _.";
	const commit = () => {
		if (text === id || wrong) setText(id);
		else if (editor.renameNode(node, text).refused) setText(id);
	};
	return (
		<div data-pointer={`${pointer}/id`}>
			<Field label="ID" error={wrong ?? problem}>
				<TextInput
					value={text}
					readOnly={fixed}
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
