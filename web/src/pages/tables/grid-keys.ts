/** Place is a cell of the grid. */
export interface Place {
	row: number;
	col: number;
}

/** placeAfter returns the cell that a key moves to; undefined if the key does not move. */
export function placeAfter(
	key: string,
	ctrl: boolean,
	{ row, col }: Place,
	size: { rows: number; cols: number },
): Place | undefined {
	const lastRow = size.rows - 1;
	const lastCol = size.cols - 1;
	const moves: Record<string, Place> = {
		ArrowUp: { row: ctrl ? 0 : Math.max(0, row - 1), col },
		ArrowDown: { row: ctrl ? lastRow : Math.min(lastRow, row + 1), col },
		ArrowLeft: { row, col: ctrl ? 0 : Math.max(0, col - 1) },
		ArrowRight: { row, col: ctrl ? lastCol : Math.min(lastCol, col + 1) },
		Home: { row: ctrl ? 0 : row, col: 0 },
		End: { row: ctrl ? lastRow : row, col: lastCol },
	};
	return Object.hasOwn(moves, key) ? moves[key] : undefined;
}
