/**
 * The longest common subsequence; among several the alphabetically first, so that the
 * result is symmetric. Both lists contain the same names.
 */
export function longestCommon(a: readonly string[], b: readonly string[]): string[] {
	const position = new Map(b.map((name, i) => [name, i]));
	const length = new Array<number>(a.length + 1).fill(0);
	const next = new Array<number>(a.length + 1).fill(a.length);
	const better = (i: number, j: number): boolean => {
		const [x, y] = [length[i] as number, length[j] as number];
		return x > y || (x === y && x > 0 && (a[i] as string) < (a[j] as string));
	};
	let start = a.length;
	for (let i = a.length - 1; i >= 0; i--) {
		for (let j = i + 1; j < a.length; j++) {
			const behind = (position.get(a[j] as string) ?? -1) > (position.get(a[i] as string) ?? -1);
			if (behind && better(j, next[i] as number)) next[i] = j;
		}
		length[i] = (length[next[i] as number] as number) + 1;
		if (better(i, start)) start = i;
	}
	const out: string[] = [];
	for (let i = start; i < a.length; i = next[i] as number) out.push(a[i] as string);
	return out;
}
