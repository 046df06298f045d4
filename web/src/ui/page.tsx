import { type ReactNode, useEffect } from "react";
import { cx } from "./class";

export interface PageHeaderProps {
	title: string;
	/** One sentence, or breadcrumbs. */
	lead?: ReactNode;
	/** Shown next to the title, such as a status. */
	badge?: ReactNode;
	/** On the right, the primary one last. */
	actions?: ReactNode;
	children?: ReactNode;
}

/** PageHeader shows the title of the page, and sets the document title. */
export function PageHeader({ title, lead, badge, actions, children }: PageHeaderProps) {
	useTitle(title);
	return (
		<header className="flex flex-col gap-4">
			<div className="flex flex-wrap items-start gap-x-4 gap-y-3">
				<div className="min-w-0 flex-1 basis-48">
					<div className="flex min-w-0 items-center gap-3">
						<h1 className="truncate text-20 font-semibold" title={title}>
							{title}
						</h1>
						{badge}
					</div>
					{lead && <div className="text-muted">{lead}</div>}
				</div>
				{actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
			</div>
			{children}
		</header>
	);
}

/** Page is the layout of a page that scrolls as a whole. */
export function Page({ children, className }: { children: ReactNode; className?: string }) {
	return (
		<div className={cx("mx-auto flex w-full max-w-6xl flex-col gap-6 p-4 sm:p-6 lg:p-8", className)}>{children}</div>
	);
}

export function useTitle(title: string): void {
	useEffect(() => {
		document.title = title ? `${title} · Stepmill` : "Stepmill";
	}, [title]);
}
