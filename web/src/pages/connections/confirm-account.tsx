import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { direct, got } from "@/api/client";
import { type ConsentOutcome, reportConsent } from "@/shared/connections/consent";
import { Button } from "@/ui/button";
import { CheckIcon, WarningIcon } from "@/ui/icons";
import { ErrorNote } from "@/ui/states";
import { DoneFrame } from "./done-frame";

/** ConfirmAccount asks whether a connection should get another account than it has. */
export function ConfirmAccount({ outcome }: { outcome: ConsentOutcome }) {
	const { state = "", confirm: name, account, replaces } = outcome;
	const [kept, setKept] = useState(false);
	const confirming = useMutation({
		mutationFn: () => got(direct.POST("/ui/v1/connections/confirm", { body: { state } })),
		meta: { quiet: true },
		onSuccess: ({ id }) => end({ state, connection: id }),
	});
	const keep = () => {
		setKept(true);
		end({ state, error: "consent_refused", message: `“${name}” still has the account ${replaces}.` });
	};
	if (kept || confirming.isSuccess) {
		return (
			<DoneFrame title={kept ? "Nothing has changed" : "Connected"} icon={CheckIcon} tone="succeeded">
				<p className="break-words">
					“{name}” {kept ? "still has" : "now has"} the account {kept ? replaces : account}. You can close this window.
				</p>
			</DoneFrame>
		);
	}
	return (
		<DoneFrame title="Use another account?" icon={WarningIcon} tone="waiting">
			<p className="break-words">
				“{name}” has the account <strong>{replaces}</strong>, but you signed in as <strong>{account}</strong>. Every
				workflow that uses the connection would act as {account}.
			</p>
			{confirming.error && <ErrorNote error={confirming.error} />}
			<p className="flex flex-wrap gap-2">
				<Button kind="primary" busy={confirming.isPending} onClick={() => confirming.mutate()}>
					Use {account}
				</Button>
				<Button onClick={keep}>Keep {replaces}</Button>
			</p>
		</DoneFrame>
	);
}

/** end reports the outcome to the window that began the consent, and closes this one. */
function end(outcome: ConsentOutcome) {
	reportConsent(outcome);
	window.close();
}
