import type { ReactNode } from "react";
import { toApiError } from "@/api/error";
import { Button } from "./button";
import { cx } from "./class";
import { CopyButton } from "./copy";
import { type Icon, RetryIcon, WarningIcon } from "./icons";
import { sentence } from "./sentence";

export interface EmptyStateProps {
	icon?: Icon;
	title: string;
	/** What to do next. */
	children?: ReactNode;
	actions?: ReactNode;
}

export function EmptyState({ icon: Shape, title, children, actions }: EmptyStateProps) {
	return (
		<div className="flex flex-col items-center gap-2 px-4 py-12 text-center">
			{Shape && (
				<span className="mb-2 flex size-10 items-center justify-center rounded-8 bg-sunken text-muted">
					<Shape size={20} />
				</span>
			)}
			<p className="text-14 font-semibold">{title}</p>
			{children && <div className="max-w-md text-muted">{children}</div>}
			{actions && <div className="mt-3 flex flex-wrap justify-center gap-2">{actions}</div>}
		</div>
	);
}

/** ErrorState replaces content that could not be loaded. */
export function ErrorState({ error, onRetry, title }: { error: unknown; onRetry?: () => void; title?: string }) {
	const { status, message, requestId } = toApiError(error);
	return (
		<div role="alert" className="flex flex-col items-center gap-2 px-4 py-12 text-center">
			<span className="mb-2 flex size-10 items-center justify-center rounded-8 bg-failed-soft text-failed">
				<WarningIcon size={20} />
			</span>
			<p className="text-14 font-semibold">
				{status === 403 ? "Your role does not allow this" : (title ?? "This could not be loaded")}
			</p>
			<p className="max-w-md break-words text-muted">{sentence(message)}</p>
			{requestId && <RequestId id={requestId} />}
			{onRetry && (
				<Button icon={RetryIcon} onClick={onRetry} className="mt-3">
					Try again
				</Button>
			)}
		</div>
	);
}

/** ErrorNote shows an error inside a form or dialog, with every field it names. */
export function ErrorNote({ error, className }: { error: unknown; className?: string }) {
	const { message, fields, requestId } = toApiError(error);
	return (
		<div role="alert" className={cx("rounded-6 border-l-4 border-failed bg-failed-soft px-3 py-2", className)}>
			<p className="break-words text-failed">{sentence(message)}</p>
			{fields.length > 0 && (
				<ul className="mt-1 flex flex-col gap-1">
					{fields.map((field) => (
						<li key={field.pointer + field.message} className="break-words">
							{field.pointer && <code className="mr-2 font-mono text-12">{field.pointer}</code>}
							{sentence(field.message)}
						</li>
					))}
				</ul>
			)}
			{requestId && <RequestId id={requestId} />}
		</div>
	);
}

function RequestId({ id }: { id: string }) {
	return (
		<span className="inline-flex max-w-full items-center gap-1 text-12 text-muted">
			<span className="truncate">
				Request <code className="font-mono">{id}</code>
			</span>
			<CopyButton value={id} label="Copy request ID" />
		</span>
	);
}

export function Skeleton({ className }: { className?: string }) {
	return (
		<span aria-hidden="true" className={cx("block animate-pulse rounded-6 bg-sunken", className ?? "h-4 w-full")} />
	);
}

/** SkeletonRows is the placeholder of a list that is loading. */
export function SkeletonRows({ rows = 6, label = "Loading" }: { rows?: number; label?: string }) {
	return (
		<div role="status" aria-label={label} className="flex flex-col">
			{Array.from({ length: rows }, (_, at) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: the rows are identical
				<div key={at} className="flex h-12 items-center gap-4 border-b px-4 last:border-b-0">
					<Skeleton className="h-4 w-4" />
					<Skeleton className={cx("h-4", at % 3 === 0 ? "w-48" : at % 3 === 1 ? "w-64" : "w-40")} />
					<span className="flex-1" />
					<Skeleton className="hidden h-4 w-20 sm:block" />
				</div>
			))}
		</div>
	);
}
