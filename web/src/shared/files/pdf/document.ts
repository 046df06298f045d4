import {
	AnnotationMode,
	getDocument,
	type PDFDocumentProxy,
	type PDFPageProxy,
	PDFWorker,
	VerbosityLevel,
} from "pdfjs-dist";
import workerUrl from "pdfjs-dist/build/pdf.worker.mjs?worker&url";

/** The largest image in a document, in pixels; larger ones are left out. */
const maxImagePixels = 1 << 26;

/** How long a worker may take to stop before it is terminated, in milliseconds. */
const stopTimeout = 2_000;

/** Pdf is an open document. */
export interface Pdf {
	document: Promise<PDFDocumentProxy>;
	close: () => void;
}

/** openPdf parses a document in a worker of its own. It executes and requests nothing. */
export function openPdf(bytes: Uint8Array<ArrayBuffer>): Pdf {
	const port = new Worker(trustedWorkerUrl(), { type: "module", name: "pdf" });
	const broken = new Promise<never>((_, reject) => {
		port.onerror = () => reject(new Error("the worker failed"));
	});
	const task = getDocument({
		data: bytes.slice(), // the worker takes ownership of it
		worker: new PDFWorker({ port: port as unknown as null, verbosity: VerbosityLevel.ERRORS }),
		verbosity: VerbosityLevel.ERRORS,
		// The content security policy allows neither of them.
		isEvalSupported: false,
		useWasm: false,
		// Nothing is loaded from anywhere: fonts that are not embedded come from the system.
		useWorkerFetch: false,
		useSystemFonts: true,
		enableXfa: false,
		maxImageSize: maxImagePixels,
	});
	return {
		document: Promise.race([task.promise, broken]),
		close: () => {
			const timeout = new Promise((resolve) => setTimeout(resolve, stopTimeout));
			// A hostile document may keep the worker so busy that it does not answer.
			void Promise.race([task.destroy(), timeout])
				.catch(() => undefined)
				.then(() => port.terminate());
		},
	};
}

/** drawPage draws a page, with what annotations look like; there is nothing to click on. */
export async function drawPage(
	page: PDFPageProxy,
	canvas: HTMLCanvasElement,
	scale: number,
	signal: AbortSignal,
): Promise<void> {
	const viewport = page.getViewport({ scale });
	canvas.width = Math.max(1, Math.floor(viewport.width));
	canvas.height = Math.max(1, Math.floor(viewport.height));
	const task = page.render({ canvas, viewport, annotationMode: AnnotationMode.ENABLE });
	signal.addEventListener("abort", () => task.cancel());
	try {
		await task.promise;
	} finally {
		page.cleanup();
	}
}

/** Only the one policy that the content security policy names can be created, and only once. */
interface TrustedTypes {
	createPolicy(
		name: string,
		rules: { createScriptURL: (url: string) => string },
	): { createScriptURL: (url: string) => string };
}

const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };

const policy = trustedTypes?.createPolicy("pdf-worker", { createScriptURL: () => workerUrl });

function trustedWorkerUrl(): string {
	return policy ? policy.createScriptURL("") : workerUrl;
}
