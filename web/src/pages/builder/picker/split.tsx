import { useState } from "react";
import { insertSplit } from "@/pages/builder/command/edit";
import { useEditor } from "@/pages/builder/state";
import type { NewStep, Place } from "@/shared/workflow/model";
import { Button, IconButton } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, NativeSelect, TextInput } from "@/ui/field";
import { PlusIcon, TrashIcon } from "@/ui/icons";
import { useActions } from "./actions";
import { stepOf } from "./choices";

interface Row {
	readonly key: number;
	readonly condition: string;
	readonly uses: string;
}

const first = "log.write";

/** SplitDialog asks for the condition and the first action of each path. */
export function SplitDialog({ place, onClose }: { place: Place; onClose: () => void }) {
	const editor = useEditor();
	const actions = useActions();
	const [rows, setRows] = useState<readonly Row[]>([{ key: 0, condition: "", uses: first }]);
	const [otherwise, setOtherwise] = useState(true);
	const [rest, setRest] = useState(first);
	const [tried, setTried] = useState(false);
	const options = (actions.data ?? []).map((action) => ({ value: action.name, label: action.title }));
	const stepFor = (uses: string): NewStep => {
		const action = actions.data?.find((one) => one.name === uses);
		return action ? stepOf(action) : { uses };
	};
	const change = (key: number, part: Partial<Row>) =>
		setRows(rows.map((row) => (row.key === key ? { ...row, ...part } : row)));
	const submit = () => {
		setTried(true);
		if (rows.some((row) => row.condition.trim() === "")) return;
		onClose();
		insertSplit(
			editor,
			rows.map((row) => ({ condition: row.condition.trim(), step: stepFor(row.uses) })),
			otherwise ? stepFor(rest) : null,
			place,
		);
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title="Split into paths"
			description="A path runs when its condition is true."
			guarded
			onSubmit={submit}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button kind="primary" type="submit">
						Split
					</Button>
				</>
			}
		>
			{rows.map((row, index) => (
				<fieldset key={row.key} className="flex flex-wrap items-start gap-2">
					<legend className="sr-only">Path {index + 1}</legend>
					<Field
						label={`Path ${index + 1}: only if`}
						className="flex-1 max-sm:basis-full"
						error={tried && row.condition.trim() === "" ? "A path needs a condition." : undefined}
					>
						<TextInput
							value={row.condition}
							placeholder="trigger.payload.total > 100"
							className="font-mono"
							onChange={(event) => change(row.key, { condition: event.target.value })}
						/>
					</Field>
					<Field label="starts with" className="w-44 max-sm:flex-1">
						<NativeSelect
							options={options}
							value={row.uses}
							onChange={(event) => change(row.key, { uses: event.target.value })}
						/>
					</Field>
					<IconButton
						icon={TrashIcon}
						label={`Remove path ${index + 1}`}
						className="mt-6"
						disabled={rows.length === 1}
						onClick={() => setRows(rows.filter((other) => other.key !== row.key))}
					/>
				</fieldset>
			))}
			<Button
				small
				icon={PlusIcon}
				className="self-start"
				onClick={() => setRows([...rows, { key: (rows.at(-1)?.key ?? 0) + 1, condition: "", uses: first }])}
			>
				Add a path
			</Button>
			<div className="flex flex-wrap items-center gap-2 border-t pt-4">
				<Checkbox
					className="flex-1"
					label="Otherwise"
					hint="When no condition is true."
					checked={otherwise}
					onChange={(event) => setOtherwise(event.target.checked)}
				/>
				<NativeSelect
					aria-label="Otherwise starts with"
					options={options}
					value={rest}
					disabled={!otherwise}
					onChange={(event) => setRest(event.target.value)}
					className="w-44 max-sm:flex-1 sm:mr-10"
				/>
			</div>
		</Dialog>
	);
}
