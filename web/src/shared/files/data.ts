import { useQuery } from "@tanstack/react-query";
import { api, base, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import * as icons from "@/ui/icons";
import { classify, type Described, type Kind } from "./kind";
import { loadPart } from "./part";

/** StoredFile is a file as the server describes it. */
export type StoredFile = Schema["File"];

/** The key of everything that lists files. */
export const filesKey = ["files"];

/** useFile reads what is known about a file; null if there is no such file. */
export function useFile(id: string) {
	return useQuery({
		queryKey: [...filesKey, id],
		queryFn: async ({ signal }) => {
			try {
				const params = { path: { id }, header: { Accept: "application/json" } };
				return (await got(api.GET("/v1/files/{id}", { params, signal }))) as StoredFile;
			} catch (thrown) {
				if (toApiError(thrown).code === "file_not_found") return null;
				throw thrown;
			}
		},
	});
}

/** usePart loads the start of a file. The bytes of a file never change. */
export function usePart({ id, size }: StoredFile, most: number) {
	return useQuery({
		queryKey: ["file bytes", id, most],
		queryFn: ({ signal }) => loadPart({ id, size }, most, signal),
		staleTime: Number.POSITIVE_INFINITY,
		gcTime: 0,
	});
}

/** downloadUrl returns the URL of the bytes, which a browser saves and never shows. */
export function downloadUrl(id: string): string {
	return `${base}/v1/files/${encodeURIComponent(id)}`;
}

const shapes: Partial<Record<Kind, icons.Icon>> = {
	image: icons.ImageIcon,
	svg: icons.ImageIcon,
	audio: icons.AudioIcon,
	video: icons.VideoIcon,
	text: icons.LogIcon,
	json: icons.BracesIcon,
	lines: icons.BracesIcon,
	csv: icons.TableIcon,
};

/** fileIcon returns the icon for the type of a file. */
export function fileIcon(file: Described): icons.Icon {
	return shapes[classify(file).kind] ?? icons.FileIcon;
}
