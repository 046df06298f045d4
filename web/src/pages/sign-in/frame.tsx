import type { ReactNode } from "react";
import { Logo } from "@/ui/logo";
import { useTitle } from "@/ui/page";

/** Frame is the layout of pages for users who are not signed in: a single card. */
export function Frame({
	title,
	lead,
	children,
	foot,
}: {
	title: string;
	lead?: ReactNode;
	children: ReactNode;
	foot?: ReactNode;
}) {
	useTitle(title);
	return (
		<main className="flex min-h-full flex-col items-center justify-center gap-6 p-4 sm:p-8">
			<Logo size={40} />
			<div className="w-full max-w-[400px] rounded-12 border bg-surface p-6 sm:p-8">
				<h1 className="text-20 font-semibold break-words">{title}</h1>
				{lead && <p className="mt-1 break-words text-muted">{lead}</p>}
				<div className="mt-6">{children}</div>
			</div>
			{foot && <p className="max-w-[400px] text-center text-12 text-muted">{foot}</p>}
		</main>
	);
}
