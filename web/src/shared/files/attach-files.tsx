import { useMutation } from "@tanstack/react-query";
import { useMay } from "@/api/session";
import { IconButton } from "@/ui/button";
import { TextInput } from "@/ui/field";
import { FileDrop } from "@/ui/file-drop";
import { formatBytes } from "@/ui/format";
import { CloseIcon } from "@/ui/icons";
import { ErrorNote } from "@/ui/states";
import { type Attachment, memberFor } from "./attachment";
import { remoteServer, transfer } from "./transfer";

export interface AttachFilesProps {
	attached: readonly Attachment[];
	onChange: (attached: readonly Attachment[]) => void;
}

/** AttachFiles uploads the files that a run starts with, and names their members of the payload. */
export function AttachFiles({ attached, onChange }: AttachFilesProps) {
	const upload = useMutation({
		meta: { quiet: true },
		mutationFn: (files: readonly File[]) => Promise.all(files.map(uploadFile)),
		onSuccess: (uploaded, files) => {
			const all = [...attached];
			files.forEach(({ name, type, size }, at) => {
				const member = memberFor(
					name,
					all.map((one) => one.member),
				);
				all.push({ member, id: uploaded[at] ?? "", name, type, size });
			});
			onChange(all);
		},
	});
	if (!useMay("execute")) return null;
	return (
		<section aria-label="Files" className="flex flex-col gap-2">
			<p>
				<span className="font-medium">Files</span>{" "}
				<span className="text-12 text-muted">become members of the payload</span>
			</p>
			{attached.length > 0 && (
				<ul aria-label="Attached files" className="flex flex-col gap-1.5">
					{attached.map((file) => (
						<AttachedFile
							key={file.id}
							file={file}
							onRename={(member) => onChange(attached.map((one) => (one === file ? { ...one, member } : one)))}
							onRemove={() => onChange(attached.filter((one) => one !== file))}
						/>
					))}
				</ul>
			)}
			<FileDrop
				multiple
				name={upload.isPending ? "Uploading…" : undefined}
				onFiles={(files) => !upload.isPending && upload.mutate(files)}
			/>
			{upload.error && <ErrorNote error={upload.error} />}
		</section>
	);
}

async function uploadFile(file: File): Promise<string> {
	let id = "";
	const signal = new AbortController().signal;
	const onId = (created: string) => {
		id = created;
	};
	await transfer({ file, signal, onId, onSent: () => undefined }, remoteServer);
	return id;
}

interface AttachedProps {
	file: Attachment;
	onRename: (member: string) => void;
	onRemove: () => void;
}

function AttachedFile({ file, onRename, onRemove }: AttachedProps) {
	return (
		<li className="flex min-w-0 items-center gap-2">
			<span className="w-24 shrink-0">
				<TextInput
					aria-label={`Member of the payload for ${file.name}`}
					value={file.member}
					spellCheck={false}
					className="font-mono text-12"
					onChange={(event) => onRename(event.target.value)}
				/>
			</span>
			<span className="min-w-0 flex-1">
				<span className="block truncate" title={file.name}>
					{file.name}
				</span>
				<span className="block truncate text-12 text-muted">{formatBytes(file.size)}</span>
			</span>
			<IconButton small icon={CloseIcon} label={`Remove ${file.name}`} onClick={onRemove} />
		</li>
	);
}
