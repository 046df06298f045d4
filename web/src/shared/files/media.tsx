import { useEffect, useState } from "react";
import type { StoredFile } from "./data";
import { classify } from "./kind";
import { Note } from "./note";

interface Props {
	file: StoredFile;
	bytes: Uint8Array<ArrayBuffer>;
}

/** Media shows an image, audio or video. */
export function Media({ file, bytes }: Props) {
	const { kind, media } = classify(file);
	const url = useUrl(bytes, media);
	const [broken, setBroken] = useState(false);
	const fail = () => setBroken(true);
	if (broken) return <Note>The browser cannot show this file: it is not what its type says, or it is damaged.</Note>;
	if (!url) return null;
	switch (kind) {
		case "audio":
			// biome-ignore lint/a11y/useMediaCaption: there are no captions
			return <audio controls src={url} onError={fail} aria-label={file.name} className="w-full shrink-0" />;
		case "video":
			return (
				// biome-ignore lint/a11y/useMediaCaption: there are no captions
				<video
					controls
					src={url}
					onError={fail}
					aria-label={file.name}
					className="max-h-[60dvh] w-full rounded-8 bg-sunken"
				/>
			);
		default:
			return (
				<div className="flex justify-center rounded-8 bg-sunken p-3">
					<img src={url} alt={file.name} onError={fail} className="max-h-[60dvh] max-w-full object-contain" />
				</div>
			);
	}
}

/**
 * useUrl returns a URL of the bytes. The media type is one of the allowed ones. SVG gets a
 * data: URL: a blob: URL belongs to this origin, and could be opened as a document there.
 */
function useUrl(bytes: Uint8Array<ArrayBuffer>, media: string | undefined): string | undefined {
	const [url, setUrl] = useState<string>();
	useEffect(() => {
		if (media) {
			const made = URL.createObjectURL(new Blob([bytes], { type: media }));
			setUrl(made);
			return () => URL.revokeObjectURL(made);
		}
		const reader = new FileReader();
		reader.onload = () => setUrl(reader.result as string);
		reader.readAsDataURL(new Blob([bytes], { type: "image/svg+xml" }));
		return () => reader.abort();
	}, [bytes, media]);
	return url;
}
