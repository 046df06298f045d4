import { useEffect } from "react";
import { type ConsentOutcome, reportConsent } from "@/shared/connections/consent";
import { CheckIcon, WarningIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";
import { ConfirmAccount } from "./confirm-account";
import { DoneFrame } from "./done-frame";

/** Done is the page at the end of a consent. It reports to the window that began it, and closes itself. */
export default function Done() {
	const outcome: ConsentOutcome = Object.fromEntries(new URLSearchParams(location.search));
	if (outcome.confirm !== undefined) return <ConfirmAccount outcome={outcome} />;
	return <Reported outcome={outcome} />;
}

function Reported({ outcome }: { outcome: ConsentOutcome }) {
	useEffect(() => {
		reportConsent(Object.fromEntries(new URLSearchParams(location.search)));
		window.close();
	}, []);
	if (outcome.connection !== undefined) {
		return (
			<DoneFrame title="Connected" icon={CheckIcon} tone="succeeded">
				<p>The connection was made. You can close this window and continue where you began.</p>
			</DoneFrame>
		);
	}
	return (
		<DoneFrame title="Not connected" icon={WarningIcon} tone="failed">
			<p role="alert" className="break-words">
				{sentence(outcome.message ?? "the connection was not made")}
			</p>
			<p>Nothing has changed. Close this window and try again where you began.</p>
		</DoneFrame>
	);
}
