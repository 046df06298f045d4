import type { ReactNode } from "react";
import type { Icon } from "@/ui/icons";
import { Page, PageHeader } from "@/ui/page";

const tones = {
	succeeded: "bg-succeeded-soft text-succeeded",
	failed: "bg-failed-soft text-failed",
	waiting: "bg-waiting-soft text-waiting",
};

/** DoneFrame is the layout of the pages at the end of a consent. */
export function DoneFrame({
	title,
	icon: Shape,
	tone,
	children,
}: {
	title: string;
	icon: Icon;
	tone: keyof typeof tones;
	children: ReactNode;
}) {
	return (
		<main className="flex min-h-dvh items-center">
			<Page className="!max-w-md">
				<span className={`flex size-10 items-center justify-center rounded-8 ${tones[tone]}`}>
					<Shape size={20} />
				</span>
				<PageHeader title={title} />
				{children}
				<p>
					<a href="/connections" className="text-accent hover:underline">
						Go to connections
					</a>
				</p>
			</Page>
		</main>
	);
}
