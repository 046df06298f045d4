import { Badge } from "@/ui/badge";
import { IconButton } from "@/ui/button";
import { ArrowDownIcon, ArrowUpIcon, ChevronDownIcon, EditIcon, TrashIcon } from "@/ui/icons";
import { Menu, MenuItem, MenuLine } from "@/ui/menu";
import { isOrdered, typeName } from "./columns";
import type { Column } from "./value";

/** The sort parameter of the API: a column, descending after a "-". */
export type Sort = string | undefined;

/** directionOf returns how the rows are sorted by a column. */
export function directionOf(sort: Sort, name: string): "ascending" | "descending" | undefined {
	if (sort === name) return "ascending";
	return sort === `-${name}` ? "descending" : undefined;
}

export interface HeaderCellProps {
	column: Column;
	isKey: boolean;
	sort: Sort;
	onSort: (sort: Sort) => void;
	/** Opens a dialog about the column; omitted for users who may not change the table. */
	onColumn?: (what: "change" | "drop", column: Column) => void;
}

/** HeaderCell names a column, sorts by it, and has the actions on it. */
export function HeaderCell({ column, isKey, sort, onSort, onColumn }: HeaderCellProps) {
	const { name, type, required, indexed } = column;
	const direction = directionOf(sort, name);
	const next = direction === undefined ? name : direction === "ascending" ? `-${name}` : undefined;
	const Arrow = direction === "descending" ? ArrowDownIcon : ArrowUpIcon;
	const traits = [typeName(type), required && !isKey && "required", indexed && "indexed"].filter(Boolean).join(", ");
	return (
		<th
			scope="col"
			aria-sort={direction}
			className="sticky top-0 z-10 max-w-80 min-w-32 border-r border-b bg-surface py-1.5 pr-1 pl-3 text-left font-normal"
		>
			<div className="flex items-center gap-1">
				<div className="min-w-0 flex-1">
					<div className="flex min-w-0 items-center gap-1.5">
						{!isOrdered(type) ? (
							<span className="truncate font-medium" title={name}>
								{name}
							</span>
						) : (
							<button
								type="button"
								title={`Sort by ${name}`}
								onClick={() => onSort(next)}
								className="flex min-w-0 items-center gap-1 rounded-6 font-medium hover:underline"
							>
								<span className="truncate">{name}</span>
								{direction && <Arrow size={12} />}
							</button>
						)}
						{isKey && <Badge tone="accent">Key</Badge>}
					</div>
					<p className="truncate text-12 text-muted">{traits}</p>
				</div>
				{onColumn && (
					<Menu trigger={<IconButton small icon={ChevronDownIcon} label={`Actions for the column ${name}`} />}>
						{isOrdered(type) && (
							<>
								<MenuItem icon={ArrowUpIcon} onSelect={() => onSort(name)}>
									Sort ascending
								</MenuItem>
								<MenuItem icon={ArrowDownIcon} onSelect={() => onSort(`-${name}`)}>
									Sort descending
								</MenuItem>
								<MenuLine />
							</>
						)}
						<MenuItem icon={EditIcon} onSelect={() => onColumn("change", column)}>
							Change column…
						</MenuItem>
						<MenuItem icon={TrashIcon} danger disabled={isKey} onSelect={() => onColumn("drop", column)}>
							Drop column…
						</MenuItem>
					</Menu>
				)}
			</div>
		</th>
	);
}
