// The page at the end of a consent runs in a window of its own and reports to the window
// that opened it. Windows of the same origin share the channel.

const channelName = "stepmill-consent";

/** The outcome of a consent, as the callback passes it in the query of the page. */
export interface ConsentOutcome {
	/** The id of the connection. */
	connection?: string;
	error?: string;
	message?: string;
}

/** reportConsent tells the other windows how a consent ended. */
export function reportConsent(outcome: ConsentOutcome): void {
	const channel = new BroadcastChannel(channelName);
	channel.postMessage(outcome);
	channel.close();
}

/** onConsent calls the handler when a consent ends in another window. */
export function onConsent(handler: (outcome: ConsentOutcome) => void): () => void {
	const channel = new BroadcastChannel(channelName);
	channel.onmessage = (event: MessageEvent<ConsentOutcome>) => handler(event.data);
	return () => channel.close();
}

/** openConsent opens the page of the service. It reports false if the browser blocked the window. */
export function openConsent(url: string): boolean {
	return window.open(url, "_blank", "popup,width=640,height=760") !== null;
}

/** The URL that services send people back to. It is registered at the service. */
export const redirectUrl = () => `${location.origin}/ui/v1/oauth/callback`;
