import { type DragEvent, useRef, useState } from "react";
import { Button } from "./button";
import { cx } from "./class";
import { UploadIcon } from "./icons";

export interface FileDropProps {
	/** The name of the chosen file. */
	name?: string;
	/** The types of files to offer, as in the attribute of an input. */
	accept?: string;
	/** Several files may be chosen at once. */
	multiple?: boolean;
	/** At least one file, and only one without `multiple`. */
	onFiles: (files: [File, ...File[]]) => void;
}

/** FileDrop takes files that are chosen or dropped. */
export function FileDrop({ name, accept, multiple, onFiles }: FileDropProps) {
	const input = useRef<HTMLInputElement>(null);
	const [over, setOver] = useState(false);
	const take = (files: Iterable<File>) => {
		const [first, ...more] = files;
		if (first) onFiles(multiple ? [first, ...more] : [first]);
	};
	const drop = (event: DragEvent) => {
		event.preventDefault();
		setOver(false);
		take(event.dataTransfer.files);
	};
	return (
		<section
			aria-label={multiple ? "Upload" : "File"}
			onDragOver={(event) => {
				event.preventDefault();
				setOver(true);
			}}
			onDragLeave={() => setOver(false)}
			onDrop={drop}
			className={cx(
				"flex flex-wrap items-center gap-3 rounded-8 border border-dashed border-control px-3 py-3",
				over && "border-accent bg-accent-soft",
			)}
		>
			<Button icon={UploadIcon} onClick={() => input.current?.click()}>
				{multiple ? "Choose files" : "Choose a file"}
			</Button>
			<span className="min-w-0 flex-1 truncate text-muted">
				{name ?? (multiple ? "or drop them here" : "or drop one here")}
			</span>
			<input
				ref={input}
				type="file"
				accept={accept}
				multiple={multiple}
				hidden
				onChange={(event) => {
					take(event.target.files ?? []);
					event.target.value = "";
				}}
			/>
		</section>
	);
}
