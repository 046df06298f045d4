import type { ReactNode } from "react";
import { cx } from "@/ui/class";

/** Fact is one entry of a list of names and values. */
export function Fact({ name, wide, children }: { name: string; wide?: boolean; children: ReactNode }) {
	return (
		<div className={cx("min-w-0", wide && "col-span-full")}>
			<dt className="text-12 text-muted">{name}</dt>
			<dd className="mt-1 min-w-0">{children}</dd>
		</div>
	);
}
