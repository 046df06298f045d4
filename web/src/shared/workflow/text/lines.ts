/** Line starts, to convert offsets to lines and columns. */
export class Lines {
	private readonly starts: number[] = [0];

	constructor(private readonly source: string) {
		for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) this.starts.push(at + 1);
	}

	at(offset: number): { line: number; column: number } {
		let low = 0;
		let high = this.starts.length - 1;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if ((this.starts[middle] as number) <= offset) low = middle;
			else high = middle - 1;
		}
		const start = this.starts[low] as number;
		return { line: low + 1, column: [...this.source.slice(start, offset)].length + 1 };
	}

	/** The offset of a line and column, in characters; the end of the line if the column does not exist. */
	offset(line: number, column: number): number {
		const start = this.starts[Math.min(Math.max(line, 1), this.starts.length) - 1] as number;
		const end = this.starts[line] ?? this.source.length + 1;
		const before = [...this.source.slice(start, end - 1)].slice(0, Math.max(0, column - 1));
		return start + before.join("").length;
	}
}
