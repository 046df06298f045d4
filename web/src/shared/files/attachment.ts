import { ApiError } from "@/api/error";
import { get, members, pointer } from "@/shared/workflow/model/pointer";

/** Attachment is an uploaded file that a run starts with. */
export interface Attachment {
	/** The member of the payload that refers to the file. */
	member: string;
	id: string;
	name: string;
	type: string;
	size: number;
}

/** FileMember is a member of a payload that refers to a file. */
export type FileMember = Pick<Attachment, "member" | "id">;

/** memberFor returns a name for a file that expressions can use and that is not taken. */
export function memberFor(name: string, taken: readonly string[]): string {
	const [stem = ""] = name.split(".");
	const plain = stem.replace(/[^A-Za-z0-9]+/g, "_").replace(/^_+|_+$/g, "") || "file";
	const first = /^[0-9]/.test(plain) ? `file_${plain}` : plain;
	let member = first;
	for (let n = 2; taken.includes(member); n++) member = `${first}_${n}`;
	return member;
}

/**
 * startWith returns the payload and the files of a request that starts a run. It throws if
 * two attached files have the same member.
 */
export function startWith<T>(
	payload: Readonly<Record<string, T>>,
	attached: readonly FileMember[],
	kept: readonly FileMember[] = [],
): { payload: Record<string, T>; files?: Record<string, string> } {
	const names = attached.map(({ member }) => member);
	const twice = names.find((name, at) => names.indexOf(name) !== at);
	if (twice !== undefined)
		throw new ApiError(400, "invalid_request", `Two files are named “${twice}”. Give each of them its own name.`);
	// An attached file replaces what the payload of an earlier run has in its place.
	const files = Object.fromEntries([...kept, ...attached].map(({ member, id }) => [member, id]));
	const rest = Object.entries(payload).filter(([name]) => !Object.hasOwn(files, name));
	return { payload: Object.fromEntries(rest), ...(Object.keys(files).length > 0 && { files }) };
}

/** What started a run, with the JSON pointers of the references to files in its payload. */
export interface Started {
	payload: Readonly<Record<string, unknown>>;
	payload_files?: readonly string[];
}

/**
 * keptFiles returns the files of an earlier run that a payload made from its payload still
 * refers to and that can be sent again. Sent as data, they would no longer be references.
 */
export function keptFiles(payload: Readonly<Record<string, unknown>>, earlier: Started | undefined): FileMember[] {
	return repeated(payload, earlier).flatMap(({ at: [member, ...inner], reference }) =>
		member !== undefined && inner.length === 0 ? [{ member, id: reference.$file }] : [],
	);
}

/**
 * lostFiles describes the files of an earlier run that a payload still refers to, but that
 * become plain data: a run starts only with files that are direct members of its payload.
 */
export function lostFiles(payload: Readonly<Record<string, unknown>>, earlier: Started | undefined): string[] {
	return repeated(payload, earlier)
		.filter(({ at }) => at.length > 1)
		.map(({ at, reference }) => `${reference.name} (${pointer(...at)})`);
}

interface Reference {
	$file: string;
	name: string;
}

/** repeated returns the references of an earlier payload that another one repeats unchanged. */
function repeated(
	payload: Readonly<Record<string, unknown>>,
	earlier: Started | undefined,
): { at: string[]; reference: Reference }[] {
	return (earlier?.payload_files ?? []).flatMap((place) => {
		const reference = get(earlier?.payload, place);
		const same = reference !== undefined && JSON.stringify(get(payload, place)) === JSON.stringify(reference);
		return same ? [{ at: members(place), reference: reference as Reference }] : [];
	});
}
