import { useMemo, useState } from "react";
import { formatBytes } from "@/ui/format";
import { DownloadIcon } from "@/ui/icons";
import { JsonView, type JsonViewProps } from "@/ui/json";
import { downloadUrl, fileIcon } from "./data";
import { FilePreview } from "./preview";

/** Reference is a file as data shows it. */
interface Reference {
	$file: string;
	name: string;
	type: string;
	size: number;
}

export interface RunDataProps extends Omit<JsonViewProps, "chips" | "chip"> {
	/**
	 * The JSON pointers of the references to files, as the server names them. Everything
	 * else is plain data, whatever it looks like.
	 */
	files: readonly string[] | undefined;
}

/** RunData shows data of a run. A reference to a file is a chip that opens a preview. */
export function RunData({ files, ...view }: RunDataProps) {
	const [open, setOpen] = useState<Reference>();
	const chips = useMemo(() => new Set(files), [files]);
	return (
		<>
			<JsonView
				{...view}
				chips={chips}
				chip={(value) => <FileChip file={value as Reference} onOpen={() => setOpen(value as Reference)} />}
			/>
			{open && <FilePreview id={open.$file} name={open.name} onClose={() => setOpen(undefined)} />}
		</>
	);
}

function FileChip({ file, onOpen }: { file: Reference; onOpen: () => void }) {
	const Shape = fileIcon(file);
	return (
		<span className="inline-flex h-5 items-center rounded-6 border bg-sunken font-sans text-12">
			<button
				type="button"
				onClick={onOpen}
				aria-label={`Preview ${file.name}`}
				title={file.name}
				className="flex h-full items-center gap-1.5 rounded-6 px-1.5 hover:text-accent"
			>
				<Shape size={12} />
				<span className="max-w-40 truncate font-medium">{file.name}</span>
				<span className="text-muted">{formatBytes(file.size)}</span>
			</button>
			<a
				href={downloadUrl(file.$file)}
				download={file.name}
				aria-label={`Download ${file.name}`}
				className="flex h-full items-center rounded-6 px-1 text-muted hover:text-accent"
			>
				<DownloadIcon size={12} />
			</a>
		</span>
	);
}
