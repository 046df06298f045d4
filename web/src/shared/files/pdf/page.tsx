import type { PDFDocumentProxy } from "pdfjs-dist";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { drawPage } from "./document";
import { fitPage, type Size } from "./fit";

export interface PdfPageProps {
	document: PDFDocumentProxy;
	/** From 1. */
	number: number;
	/** The available width, in pixels. */
	width: number;
	/** The size of the page in its own units, or a guess. */
	size: Size;
	/** Called with the size once it is known. */
	onSize: (size: Size) => void;
}

/** PdfPage draws one page. */
export function PdfPage({ document, number, width, size, onSize }: PdfPageProps) {
	const canvas = useRef<HTMLCanvasElement>(null);
	const [failed, setFailed] = useState(false);
	const found = useEffectEvent(onSize);
	useEffect(() => {
		const own = canvas.current;
		if (!own) return undefined;
		const abort = new AbortController();
		const draw = async () => {
			const page = await document.getPage(number);
			if (abort.signal.aborted) return;
			const actual = page.getViewport({ scale: 1 });
			found({ width: actual.width, height: actual.height });
			await drawPage(page, own, fitPage(actual, width, devicePixelRatio).scale, abort.signal);
		};
		draw().catch(() => !abort.signal.aborted && setFailed(true));
		return () => {
			abort.abort();
			own.width = 0; // releases its memory
		};
	}, [document, number, width]);
	const label = `Page ${number} of ${document.numPages}`;
	if (failed) return <p className="text-muted">{label} is damaged.</p>;
	const shown = fitPage(size, width, 1);
	return (
		<canvas
			ref={canvas}
			role="img"
			aria-label={label}
			className="bg-white"
			style={{ width: shown.width, height: shown.height }}
		/>
	);
}
