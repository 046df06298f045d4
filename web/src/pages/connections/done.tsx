import { useEffect } from "react";
import { type ConsentOutcome, reportConsent } from "@/shared/connections/consent";
import { CheckIcon, WarningIcon } from "@/ui/icons";
import { Page, PageHeader } from "@/ui/page";
import { sentence } from "@/ui/sentence";

/** Done is the page at the end of a consent. It reports to the window that began it, and closes itself. */
export default function Done() {
	const outcome: ConsentOutcome = Object.fromEntries(new URLSearchParams(location.search));
	useEffect(() => {
		reportConsent(Object.fromEntries(new URLSearchParams(location.search)));
		window.close();
	}, []);
	const connected = outcome.connection !== undefined;
	const Shape = connected ? CheckIcon : WarningIcon;
	return (
		<main className="flex min-h-dvh items-center">
			<Page className="!max-w-md">
				<span
					className={`flex size-10 items-center justify-center rounded-8 ${connected ? "bg-succeeded-soft text-succeeded" : "bg-failed-soft text-failed"}`}
				>
					<Shape size={20} />
				</span>
				<PageHeader title={connected ? "Connected" : "Not connected"} />
				<p role={connected ? undefined : "alert"} className="break-words">
					{connected
						? "The connection was made. You can close this window and continue where you began."
						: sentence(outcome.message ?? "the connection was not made")}
				</p>
				{!connected && <p>Nothing has changed. Close this window and try again where you began.</p>}
				<p>
					<a href="/connections" className="text-accent hover:underline">
						Go to connections
					</a>
				</p>
			</Page>
		</main>
	);
}
