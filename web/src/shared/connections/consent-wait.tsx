import { useEffect, useRef, useState } from "react";
import { api, got } from "@/api/client";
import { ApiError, toApiError } from "@/api/error";
import { Button, Spinner } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { type ConsentOutcome, consentMinutes, onConsent, type PendingConsent } from "./consent";
import { ConsentError } from "./consent-error";
import type { Connection } from "./data";
import { RedirectUrl } from "./redirect-url";

interface ConsentWaitProps {
	title: string;
	serviceName: string;
	consent: PendingConsent;
	onClose: () => void;
	onAgain: () => void;
	onConnected: (connection: Connection) => void;
}

/** ConsentWait waits until a person has consented in another window. */
export function ConsentWait({ title, serviceName, consent, onClose, onAgain, onConnected }: ConsentWaitProps) {
	const { url, opened } = consent;
	const error = useOutcome(url, onConnected);
	return (
		<Dialog
			open
			guarded
			onOpenChange={(open) => !open && onClose()}
			title={title}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					{error && (
						<Button kind="primary" onClick={onAgain}>
							Try again
						</Button>
					)}
				</>
			}
		>
			{error ? (
				<ConsentError error={error} serviceName={serviceName} />
			) : (
				<>
					<p role="status" className="flex items-start gap-2">
						{opened && (
							<span className="flex h-5 items-center">
								<Spinner />
							</span>
						)}
						{opened
							? `Allow the connection in the window of ${serviceName}. You have ${consentMinutes} minutes. This dialog then continues by itself.`
							: `The browser blocked the window of ${serviceName}. Open it with this link:`}
					</p>
					<p>
						{opened && "Did you close the window? "}
						<a href={url} target="_blank" rel="noreferrer" className="text-accent underline">
							{opened ? "Open it again" : `Open ${serviceName}`}
						</a>
					</p>
					<details>
						<summary className="text-muted hover:text-text">
							{serviceName === "the service" ? "The service" : serviceName} reports a wrong redirect URL
						</summary>
						<div className="mt-2">
							<RedirectUrl serviceName={serviceName} />
						</div>
					</details>
				</>
			)}
		</Dialog>
	);
}

/** useOutcome calls the handler once the consent has made the connection. It returns why that failed. */
function useOutcome(url: string, onConnected: (connection: Connection) => void): ApiError | undefined {
	const [error, setError] = useState<ApiError>();
	const latest = useRef(onConnected);
	useEffect(() => {
		latest.current = onConnected;
	});
	useEffect(() => {
		setError(undefined);
		const expire = () => setError(new ApiError(0, "consent_expired", expiredMessage));
		const timer = setTimeout(expire, consentMinutes * 60_000);
		const stop = onConsent(url, async (outcome) => {
			clearTimeout(timer);
			try {
				latest.current(await connectionOf(outcome));
			} catch (thrown) {
				setError(toApiError(thrown));
			}
		});
		return () => {
			clearTimeout(timer);
			stop();
		};
	}, [url]);
	return error;
}

const expiredMessage = `The connection was not allowed within ${consentMinutes} minutes. Nothing has changed: try again.`;

function connectionOf({ connection, error, message }: ConsentOutcome): Promise<Connection> {
	if (!connection) throw new ApiError(0, error ?? "", message ?? "The service did not allow the connection.");
	return got(api.GET("/v1/connections/{id}", { params: { path: { id: connection } } }));
}
