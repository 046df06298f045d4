/** A width and a height. */
export interface Size {
	width: number;
	height: number;
}

/** How a page is drawn. */
export interface Fitted extends Size {
	/** Pixels of the canvas per unit of the page. */
	scale: number;
}

/** The highest page, as a multiple of its width. Receipts are long; a hostile page could be endless. */
const highest = 20;

/** The lowest place of a page, so that only a few pages are in view at a time. */
export const lowest = 40;

/** The largest canvas. A larger page is drawn with fewer pixels. */
const maxPixels = 1 << 24;
const maxSide = 1 << 14;

/** fitPage fits a page to the available width. */
export function fitPage(page: Size, available: number, pixelRatio: number): Fitted {
	const zoom = Math.min(available / page.width, (available * highest) / page.height);
	const width = page.width * zoom;
	const height = page.height * zoom;
	const scale = Math.min(
		zoom * pixelRatio,
		Math.sqrt(maxPixels / (page.width * page.height)),
		maxSide / page.width,
		maxSide / page.height,
	);
	return { width, height, scale };
}
