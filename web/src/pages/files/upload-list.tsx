import { IconButton } from "@/ui/button";
import { formatBytes } from "@/ui/format";
import { CheckIcon, CloseIcon, PauseIcon, PlayIcon, RetryIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";
import { cancelUpload, pauseUpload, resumeUpload, type Upload, useUploads } from "./uploads";

/** UploadList shows the uploads of this tab. */
export function UploadList() {
	const uploads = useUploads((state) => state.uploads);
	if (uploads.length === 0) return null;
	return (
		<ul aria-label="Uploads" className="flex flex-col gap-2">
			{uploads.map((upload) => (
				<UploadItem key={upload.key} upload={upload} />
			))}
		</ul>
	);
}

const stateText = ({ state, sent, file, error }: Upload): string => {
	switch (state) {
		case "done":
			return `Uploaded, ${formatBytes(file.size)}`;
		case "failed":
			return error ? sentence(error.message) : "Failed";
		default:
			return `${state === "paused" ? "Paused at " : ""}${formatBytes(sent)} of ${formatBytes(file.size)}`;
	}
};

function UploadItem({ upload }: { upload: Upload }) {
	const { key, file, state, sent } = upload;
	const share = file.size > 0 ? (sent / file.size) * 100 : 0;
	return (
		<li className="flex items-center gap-2 rounded-8 border bg-surface py-2 pr-2 pl-4">
			<div className="min-w-0 flex-1">
				<p className="flex items-center gap-2">
					<span className="truncate font-medium" title={file.name}>
						{file.name}
					</span>
					{state === "done" && <CheckIcon className="text-succeeded" />}
				</p>
				{(state === "sending" || state === "paused") && (
					<div
						role="progressbar"
						aria-label={`Upload of ${file.name}`}
						aria-valuenow={Math.round(share)}
						aria-valuemin={0}
						aria-valuemax={100}
						className="my-1 h-1.5 overflow-hidden rounded-full bg-sunken"
					>
						<div className="h-full bg-accent" style={{ width: `${share}%` }} />
					</div>
				)}
				<p
					role={state === "failed" ? "alert" : undefined}
					className={state === "failed" ? "break-words text-12 text-failed" : "text-12 text-muted tabular"}
				>
					{stateText(upload)}
				</p>
			</div>
			{state === "sending" && (
				<IconButton icon={PauseIcon} label={`Pause ${file.name}`} onClick={() => pauseUpload(key)} />
			)}
			{state === "paused" && (
				<IconButton icon={PlayIcon} label={`Resume ${file.name}`} onClick={() => void resumeUpload(key)} />
			)}
			{state === "failed" && (
				<IconButton icon={RetryIcon} label={`Try ${file.name} again`} onClick={() => void resumeUpload(key)} />
			)}
			<IconButton
				icon={CloseIcon}
				label={state === "done" ? `Dismiss ${file.name}` : `Cancel ${file.name}`}
				onClick={() => cancelUpload(upload)}
			/>
		</li>
	);
}
