import { useEffect, useRef, useState } from "react";
import { api, got } from "@/api/client";
import { ApiError, toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { ErrorNote } from "@/ui/states";
import { onConsent } from "./consent";
import type { Connection } from "./data";

interface ConsentWaitProps {
	title: string;
	serviceName: string;
	/** Where the person consents. */
	url: string;
	/** Whether the window with that page is open. */
	opened: boolean;
	onClose: () => void;
	onAgain: () => void;
	onConnected: (connection: Connection) => void;
}

/** ConsentWait waits until a person has consented in another window. */
export function ConsentWait({ title, serviceName, url, opened, onClose, onAgain, onConnected }: ConsentWaitProps) {
	const [error, setError] = useState<ApiError>();
	const latest = useRef(onConnected);
	useEffect(() => {
		latest.current = onConnected;
	});
	useEffect(
		() =>
			onConsent(async ({ connection, error: code, message }) => {
				try {
					if (!connection) throw new ApiError(0, code ?? "", message ?? "The service did not allow the connection.");
					latest.current(await got(api.GET("/v1/connections/{id}", { params: { path: { id: connection } } })));
				} catch (thrown) {
					setError(toApiError(thrown));
				}
			}),
		[],
	);
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
				<p role="status">
					{opened
						? `Continue in the window of ${serviceName}. This dialog closes once you have allowed the connection.`
						: `The browser blocked the window of ${serviceName}.`}
				</p>
			)}
			{!error && (
				<p>
					<a href={url} target="_blank" rel="noreferrer" className="text-accent hover:underline">
						{opened ? "Open the window again" : `Open ${serviceName}`}
					</a>
				</p>
			)}
		</Dialog>
	);
}
