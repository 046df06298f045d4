import { useEffect } from "react";
import { type ConsentOutcome, reportConsent } from "@/shared/connections/consent";
import { Page, PageHeader } from "@/ui/page";
import { sentence } from "@/ui/sentence";

/** Done is the page at the end of a consent. It reports to the window that began it, and closes itself. */
export default function Done() {
	const outcome = Object.fromEntries(new URLSearchParams(location.search)) as ConsentOutcome;
	useEffect(() => {
		reportConsent(Object.fromEntries(new URLSearchParams(location.search)));
		window.close();
	}, []);
	return (
		<Page className="!max-w-xl">
			<PageHeader title={outcome.connection ? "Connected" : "Not connected"} />
			<p role={outcome.connection ? undefined : "alert"} className="break-words">
				{outcome.connection ? "You can close this window." : sentence(outcome.message ?? "the connection was not made")}
			</p>
			<p>
				<a href="/connections" className="text-accent hover:underline">
					Go to connections
				</a>
			</p>
		</Page>
	);
}
