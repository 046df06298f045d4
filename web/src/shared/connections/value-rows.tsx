import type { ReactNode } from "react";
import { Button, IconButton } from "@/ui/button";
import { NativeSelect, TextInput } from "@/ui/field";
import { PlusIcon, TrashIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";

interface Row<W extends string> {
	readonly where: W;
	readonly name: string;
	readonly value: string;
}

interface ValueRowsProps<W extends string> {
	legend: string;
	/** What a row is, such as "place". */
	noun: string;
	/** Where a value can go. */
	places: readonly { value: W; label: string }[];
	/** What a new row has. */
	fresh: Row<W>;
	/** Whether the last row cannot be removed. */
	required?: boolean;
	rows: readonly Row<W>[];
	onChange: (rows: Row<W>[]) => void;
	error?: string;
	/** The hint below the rows. */
	children: ReactNode;
}

/** ValueRows edits named values that go to one of several places in a request. */
export function ValueRows<W extends string>(props: ValueRowsProps<W>) {
	const { legend, noun, places, fresh, required = false, rows, onChange, error, children } = props;
	const set = (at: number, patch: Partial<Row<W>>) =>
		onChange(rows.map((one, i) => (i === at ? { ...one, ...patch } : one)));
	return (
		<fieldset className="flex min-w-0 flex-col gap-2">
			<legend className="mb-1 font-medium">{legend}</legend>
			{rows.map((one, i) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity, and are only removed by the person who edits them
				<div key={i} className="flex min-w-0 flex-wrap items-center gap-2">
					<NativeSelect
						aria-label={`${capitalize(noun)} ${i + 1}`}
						className="!w-auto"
						options={[...places]}
						value={one.where}
						onChange={(event) => set(i, { where: event.target.value as W })}
					/>
					<TextInput
						aria-label={`Name of ${noun} ${i + 1}`}
						className="!w-36 font-mono text-12"
						value={one.name}
						onChange={(event) => set(i, { name: event.target.value })}
					/>
					<TextInput
						aria-label={`Value of ${noun} ${i + 1}`}
						className="!w-auto min-w-40 flex-1 font-mono text-12"
						value={one.value}
						onChange={(event) => set(i, { value: event.target.value })}
					/>
					{(!required || rows.length > 1) && (
						<IconButton
							small
							icon={TrashIcon}
							label={`Remove ${noun} ${i + 1}`}
							onClick={() => onChange(rows.filter((_, at) => at !== i))}
						/>
					)}
				</div>
			))}
			<Button small kind="quiet" icon={PlusIcon} className="self-start" onClick={() => onChange([...rows, fresh])}>
				Add a {noun}
			</Button>
			{error && <p className="text-12 break-words text-failed">{sentence(error)}</p>}
			<p className="text-12 text-muted">{children}</p>
		</fieldset>
	);
}

const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
