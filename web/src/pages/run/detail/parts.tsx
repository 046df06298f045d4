import type { ReactNode } from "react";
import { CopyButton } from "@/ui/copy";
import { hintFor } from "../model/hints";

/** Heading shows the title of the details and the path that the API uses. */
export function Heading({ title, path, badge }: { title: string; path?: string; badge?: ReactNode }) {
	return (
		<div className="flex items-start gap-3 px-4 pt-3 pb-1">
			<div className="min-w-0 flex-1">
				<h2 className="truncate text-14 font-semibold" title={title}>
					{title}
				</h2>
				{path && <PathLine path={path} />}
			</div>
			{badge}
		</div>
	);
}

export function PathLine({ path }: { path: string }) {
	return (
		<span className="flex min-w-0 items-center gap-1 text-12 text-muted">
			<code className="truncate font-mono" title={path}>
				{path}
			</code>
			<span className="-my-1">
				<CopyButton value={path} label="Copy path" />
			</span>
		</span>
	);
}

/** Facts is a list of names and values. */
export function Facts({ children }: { children: ReactNode }) {
	return <dl className="grid grid-cols-[112px_minmax(0,1fr)] gap-x-3 gap-y-2">{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
	return (
		<>
			<dt className="text-muted">{name}</dt>
			<dd className="min-w-0 break-words">{children}</dd>
		</>
	);
}

/** Failure shows the error of a step or a run, with a hint. */
export function Failure({ code, message, status }: { code: string; message: string; status?: number }) {
	const hint = hintFor(code, status);
	return (
		<div className="rounded-6 border-l-4 border-failed bg-failed-soft px-3 py-2">
			<p className="break-words">{message}</p>
			<code className="font-mono text-12 text-failed">{code}</code>
			{hint && <p className="mt-1 text-muted">{hint}</p>}
		</div>
	);
}

export function EmptyText({ children }: { children: ReactNode }) {
	return <p className="text-muted">{children}</p>;
}
