import type { ReactNode } from "react";
import { cx } from "./class";

export interface Column<T> {
	key: string;
	header: ReactNode;
	cell: (row: T) => ReactNode;
	className?: string;
	/** Hidden below 640 px, or below 1024 px ("lg"). The first column is always shown. */
	wide?: boolean | "lg";
	align?: "right";
}

export interface TableProps<T> {
	/** Read by screen readers. */
	label: string;
	columns: Column<T>[];
	rows: T[];
	rowKey: (row: T) => string;
	/** Highlights a row, such as a selected one. */
	rowClass?: (row: T) => string | undefined;
}

const hidden = (wide: boolean | "lg" | undefined) => (wide === "lg" ? "max-lg:hidden" : wide && "max-sm:hidden");

/**
 * Table renders rows. The first cell should contain the link that opens the row: give it
 * the class `row-link` to make the whole row clickable.
 */
export function Table<T>({ label, columns, rows, rowKey, rowClass }: TableProps<T>) {
	return (
		<div className="relative overflow-x-auto">
			<table aria-label={label} className="w-full border-collapse text-left">
				<thead>
					<tr>
						{columns.map((column) => (
							<th
								key={column.key}
								scope="col"
								className={cx(
									"h-9 border-b px-3 text-12 font-medium whitespace-nowrap text-muted first:pl-4 last:pr-4",
									hidden(column.wide),
									column.align === "right" && "text-right",
								)}
							>
								{column.header}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{rows.map((row) => (
						<tr
							key={rowKey(row)}
							className={cx("relative border-b last:border-b-0 hover:bg-sunken/50", rowClass?.(row))}
						>
							{columns.map((column) => (
								<td
									key={column.key}
									className={cx(
										"h-12 px-3 py-2 first:pl-4 last:pr-4",
										hidden(column.wide),
										column.align === "right" && "text-right tabular",
										column.className,
									)}
								>
									{column.cell(row)}
								</td>
							))}
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

/** Card is the surface of lists and forms. */
export function Card({ children, className }: { children: ReactNode; className?: string }) {
	return <div className={cx("overflow-clip rounded-12 border bg-surface", className)}>{children}</div>;
}
