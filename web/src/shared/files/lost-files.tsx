import { lostFiles, type Started } from "./attachment";

interface Props {
	payload: Readonly<Record<string, unknown>> | undefined;
	/** What started the run whose payload is used again. */
	earlier: Started | undefined;
}

/** LostFiles says which files of an earlier run a new run does not get with its payload. */
export function LostFiles({ payload, earlier }: Props) {
	const lost = payload ? lostFiles(payload, earlier) : [];
	if (lost.length === 0) return null;
	return (
		<p role="status" className="rounded-6 bg-sunken px-3 py-2 text-12 break-words">
			The run gets plain data instead of {lost.length === 1 ? "this file" : "these files"}: {lost.join(", ")}. Only
			files that are direct members of the payload can be used again.
		</p>
	);
}
