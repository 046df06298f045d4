// A consent takes place in a window of its own. The page at its end reports the outcome to
// the other windows of the dashboard, and the one that asked recognizes its consent by the
// state. The windows cannot reach each other in another way, because the dashboard's
// opener policy separates them. So nobody notices when a person closes the window.

const channelName = "stepmill-consent";

/** How long a person may take to consent, as on the server. */
export const consentMinutes = 10;

/** A consent that a person was asked for. */
export interface PendingConsent {
	/** Where the person consents. */
	url: string;
	/** Whether the window with that page opened. */
	opened: boolean;
}

/** The outcome of a consent, as the callback passes it in the query of the page. */
export interface ConsentOutcome {
	/** Says which consent it was. */
	state?: string;
	/** The id of the connection. */
	connection?: string;
	/** The name of the connection that would get another account, which the person has to confirm. */
	confirm?: string;
	account?: string;
	/** The account that it has. */
	replaces?: string;
	error?: string;
	message?: string;
}

/** reportConsent tells the other windows how a consent ended. */
export function reportConsent(outcome: ConsentOutcome): void {
	const channel = new BroadcastChannel(channelName);
	channel.postMessage(outcome);
	channel.close();
}

/** onConsent calls the handler when the consent at a URL ends in another window. */
export function onConsent(url: string, handler: (outcome: ConsentOutcome) => void): () => void {
	const state = new URL(url).searchParams.get("state");
	const channel = new BroadcastChannel(channelName);
	channel.onmessage = ({ data }: MessageEvent<ConsentOutcome>) => {
		if (state && data.state === state) handler(data);
	};
	return () => channel.close();
}

/** openConsent opens the page of the service in another window, unless the browser blocks it. */
export function openConsent(url: string): PendingConsent {
	return { url, opened: window.open(url, "_blank", "popup,width=640,height=760") !== null };
}
