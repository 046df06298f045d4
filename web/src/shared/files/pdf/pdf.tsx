import { useVirtualizer } from "@tanstack/react-virtual";
import type { PDFDocumentProxy } from "pdfjs-dist";
import { useEffect, useRef, useState } from "react";
import { formatNumber } from "@/ui/format";
import { Skeleton } from "@/ui/states";
import { useWidth } from "@/ui/width";
import { Note } from "../note";
import { openPdf } from "./document";
import { failureOf } from "./failure";
import { fitPage, lowest, type Size } from "./fit";
import { PdfPage } from "./page";

/** How many pages are shown: a document can claim to have any number. */
const shownPages = 2_000;

/** Space between pages, in pixels. */
const gap = 12;

type State = { document?: PDFDocumentProxy; first?: Size; failure?: string };

/** PdfContent shows the pages of a PDF as images. */
export default function PdfContent({ name, bytes }: { name: string; bytes: Uint8Array<ArrayBuffer> }) {
	const { document, first, failure } = useDocument(bytes);
	if (failure) return <Note>{failure}</Note>;
	if (!document || !first) return <Skeleton className="h-[60dvh] w-full shrink-0" />;
	return <Pages name={name} document={document} first={first} />;
}

function useDocument(bytes: Uint8Array<ArrayBuffer>): State {
	const [state, setState] = useState<State>({});
	useEffect(() => {
		let closed = false;
		const pdf = openPdf(bytes);
		const load = async () => {
			const document = await pdf.document;
			const page = await document.getPage(1);
			return { document, first: page.getViewport({ scale: 1 }) };
		};
		load()
			.catch((error: unknown) => ({ failure: failureOf(error) }))
			.then((next) => !closed && setState(next));
		return () => {
			closed = true;
			setState({});
			pdf.close();
		};
	}, [bytes]);
	return state;
}

interface PagesProps {
	name: string;
	document: PDFDocumentProxy;
	/** The size of the first page, which others probably have too. */
	first: Size;
}

function Pages({ name, document, first }: PagesProps) {
	const count = Math.min(document.numPages, shownPages);
	const outer = useRef<HTMLElement>(null);
	const [width, inner] = useWidth<HTMLDivElement>();
	const sizes = useRef(new Map<number, Size>());
	const place = (at: number) => placeHeight(sizes.current.get(at) ?? first, width ?? 0);
	const rows = useVirtualizer({
		count,
		getScrollElement: () => outer.current,
		estimateSize: place,
		gap,
		overscan: 1,
		// React rejects a synchronous update while it renders or runs effects.
		useFlushSync: false,
	});
	// biome-ignore lint/correctness/useExhaustiveDependencies: the heights depend on the width
	useEffect(() => rows.measure(), [rows, width]);
	const measured = (at: number, size: Size) => {
		sizes.current.set(at, size);
		rows.resizeItem(at, place(at));
	};
	return (
		<div className="flex min-w-0 shrink-0 flex-col gap-1">
			<section
				ref={outer}
				aria-label={`Pages of ${name}`}
				// biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
				tabIndex={0}
				className="h-[60dvh] overflow-y-auto rounded-8 border bg-sunken p-3"
			>
				<div ref={inner} className="relative" style={{ height: rows.getTotalSize() }}>
					{width !== undefined &&
						rows.getVirtualItems().map(({ index, start, size }) => (
							<div
								key={index}
								className="absolute inset-x-0 flex items-center justify-center"
								style={{ top: start, height: size }}
							>
								<PdfPage
									document={document}
									number={index + 1}
									width={width}
									size={sizes.current.get(index) ?? first}
									onSize={(size) => measured(index, size)}
								/>
							</div>
						))}
				</div>
			</section>
			<p className="text-12 text-muted">{pageCount(document.numPages)}</p>
		</div>
	);
}

function placeHeight(page: Size, width: number): number {
	return Math.max(lowest, fitPage(page, width, 1).height);
}

function pageCount(pages: number): string {
	if (pages > shownPages) return `The first ${formatNumber(shownPages)} of ${formatNumber(pages)} pages.`;
	return pages === 1 ? "1 page." : `${formatNumber(pages)} pages.`;
}
