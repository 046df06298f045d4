import { base } from "@/api/client";
import { useMay } from "@/api/session";
import { Button, IconButton } from "@/ui/button";
import { DownloadIcon, EditIcon, MoreIcon, PlusIcon, TrashIcon, UploadIcon } from "@/ui/icons";
import { Menu, MenuItem, MenuLine } from "@/ui/menu";
import type { Query, Table } from "./data";
import type { Column } from "./value";

/** OpenDialog is the dialog that is open on the page of a table. */
export type OpenDialog =
	| { what: "row"; query: Query | undefined }
	| { what: "change column" | "drop column"; column: Column }
	| { what: "add column" | "import" | "rename" | "delete" };

/** TableActions are the actions on the whole table. */
export function TableActions({ table, onOpen }: { table: Table; onOpen: (dialog: OpenDialog) => void }) {
	const write = useMay("write");
	return (
		<>
			{write && (
				<Button icon={UploadIcon} onClick={() => onOpen({ what: "import" })}>
					Import CSV
				</Button>
			)}
			{/* A link, so that the browser writes a large table to disk while it arrives. */}
			<Button asChild>
				<a
					href={`${base}/v1/tables/${table.id}/export`}
					download={`${table.name}.csv`}
					title="All rows, the oldest first"
				>
					<DownloadIcon />
					Export all rows
				</a>
			</Button>
			{write && (
				<Menu trigger={<IconButton icon={MoreIcon} label="More" kind="secondary" />}>
					<MenuItem icon={PlusIcon} onSelect={() => onOpen({ what: "add column" })}>
						Add column…
					</MenuItem>
					<MenuItem icon={EditIcon} onSelect={() => onOpen({ what: "rename" })}>
						Rename…
					</MenuItem>
					<MenuLine />
					<MenuItem icon={TrashIcon} danger onSelect={() => onOpen({ what: "delete" })}>
						Delete table…
					</MenuItem>
				</Menu>
			)}
		</>
	);
}
