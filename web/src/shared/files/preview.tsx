import type { ReactNode } from "react";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { formatBytes, formatNumber } from "@/ui/format";
import { DownloadIcon, FileIcon } from "@/ui/icons";
import { EmptyState, ErrorState, Skeleton } from "@/ui/states";
import { fullTime } from "@/ui/time";
import { Content } from "./content";
import { downloadUrl, type StoredFile, useFile } from "./data";

export interface FilePreviewProps {
	id: string;
	/** Shown until the server has described the file. */
	name?: string;
	onClose: () => void;
}

/** FilePreview shows what is in a file, and what is known about it. */
export function FilePreview({ id, name = "File", onClose }: FilePreviewProps) {
	const file = useFile(id);
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={file.data?.name ?? name}
			width="large"
			actions={
				file.data && (
					<Button asChild kind="primary">
						<a href={downloadUrl(id)} download={file.data.name}>
							<DownloadIcon />
							Download
						</a>
					</Button>
				)
			}
		>
			{file.isPending && <Skeleton className="h-48 w-full" />}
			{file.error && <ErrorState error={file.error} onRetry={() => void file.refetch()} />}
			{file.data === null && (
				<EmptyState icon={FileIcon} title="There is no such file">
					It was deleted or has expired, or what looks like a file here is plain data.
				</EmptyState>
			)}
			{file.data && (
				<>
					<Content file={file.data} />
					<Facts file={file.data} />
				</>
			)}
		</Dialog>
	);
}

function Facts({ file: { type, size, sha256, created_at, expires_at } }: { file: StoredFile }) {
	return (
		<dl className="grid grid-cols-[80px_minmax(0,1fr)] gap-x-3 gap-y-1 text-12">
			<Fact name="Type">{type}</Fact>
			<Fact name="Size">
				{formatBytes(size)}
				{size >= 1024 && ` (${formatNumber(size)} bytes)`}
			</Fact>
			<Fact name="SHA-256">
				<span className="flex items-center gap-1">
					<code className="truncate font-mono" title={sha256}>
						{sha256}
					</code>
					<span className="-my-1.5">
						<CopyButton value={sha256} label="Copy SHA-256" />
					</span>
				</span>
			</Fact>
			<Fact name="Created">{fullTime(created_at)}</Fact>
			<Fact name="Expires">{expires_at ? fullTime(expires_at) : "When nothing refers to it anymore"}</Fact>
		</dl>
	);
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
	return (
		<>
			<dt className="text-muted">{name}</dt>
			<dd className="min-w-0 break-words">{children}</dd>
		</>
	);
}
