import { useEffect, useRef, useState } from "react";
import { direct, got, type Schema } from "@/api/client";
import { type ApiError, toApiError } from "@/api/error";
import { Button, Spinner } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { ErrorNote } from "@/ui/states";
import { timeOfDay } from "@/ui/time";
import type { Connection } from "./data";

/** A code that a person enters at a service, on any device. */
export type DeviceConsent = Schema["DeviceConsent"];

interface DeviceWaitProps {
	title: string;
	device: DeviceConsent;
	onClose: () => void;
	onAgain: () => void;
	onConnected: (connection: Connection) => void;
}

/** DeviceWait shows a code, and waits until a person has entered it at the service. */
export function DeviceWait({ title, device, onClose, onAgain, onConnected }: DeviceWaitProps) {
	const error = useOutcome(device, onConnected);
	const { user_code: code, verification_url: url, verification_url_complete: complete, expires_at: end } = device;
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
				<ErrorNote error={error} />
			) : (
				<>
					<p>
						Open{" "}
						<a href={url} target="_blank" rel="noreferrer" className="break-all text-accent underline">
							{url}
						</a>{" "}
						on any device, and enter this code:
					</p>
					<p className="flex items-center justify-center gap-2 rounded-6 border bg-sunken px-3 py-4">
						<code className="min-w-0 font-mono text-20 font-medium tracking-wider break-all">{code}</code>
						<CopyButton value={code} label="Copy the code" />
					</p>
					{complete && (
						<p>
							<a href={complete} target="_blank" rel="noreferrer" className="text-accent underline">
								Open the page with the code filled in
							</a>
							. Check that it shows the code above.
						</p>
					)}
					<p role="status" className="flex items-start gap-2 text-muted">
						<span className="flex h-5 items-center">
							<Spinner />
						</span>
						The code is valid until {timeOfDay(Date.parse(end))}. Keep this dialog open: it continues by itself once you
						have allowed the access.
					</p>
				</>
			)}
		</Dialog>
	);
}

/** How long to wait after a request that failed for now, in seconds. */
const failurePause = 5;

/** useOutcome asks until the consent has made the connection, and calls the handler then. It returns why that failed. */
function useOutcome(device: DeviceConsent, onConnected: (connection: Connection) => void): ApiError | undefined {
	const { state, retry_after: first, expires_at: end } = device;
	const [error, setError] = useState<ApiError>();
	const latest = useRef(onConnected);
	useEffect(() => {
		latest.current = onConnected;
	});
	useEffect(() => {
		setError(undefined);
		let timer: ReturnType<typeof setTimeout>;
		let stopped = false;
		const pollIn = (seconds: number) => {
			timer = setTimeout(() => void poll(), seconds * 1000);
		};
		const poll = async () => {
			try {
				const outcome = await got(direct.POST("/ui/v1/connections/poll-device", { body: { state } }));
				if (stopped) return;
				if (outcome.connection) latest.current(outcome.connection);
				else pollIn(outcome.retry_after ?? failurePause);
			} catch (thrown) {
				if (stopped) return;
				const problem = toApiError(thrown);
				// The server may be restarting. The code stays valid.
				if (isTemporary(problem) && Date.now() < Date.parse(end)) pollIn(problem.retryAfter ?? failurePause);
				else setError(problem);
			}
		};
		pollIn(first);
		return () => {
			stopped = true;
			clearTimeout(timer);
		};
	}, [state, first, end]);
	return error;
}

const isTemporary = ({ status }: ApiError) => status === 0 || status === 429 || status >= 500;
