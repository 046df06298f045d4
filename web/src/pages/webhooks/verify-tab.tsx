import { useState } from "react";
import { CodeBlock } from "@/ui/code";
import { Card } from "@/ui/table";
import { Tabs } from "@/ui/tabs";
import { examples } from "./verify";

/** Verify tells how a receiver knows that a request came from here. */
export function Verify() {
	const [language, setLanguage] = useState("Node");
	return (
		<Card className="flex flex-col gap-4 p-4">
			<div className="flex max-w-2xl flex-col gap-2">
				<p>
					Everybody can send a POST to your URL. Each request from here carries{" "}
					<code className="font-mono text-12">webhook-signature</code>: an HMAC-SHA256 of{" "}
					<code className="font-mono text-12">webhook-id.webhook-timestamp.body</code> with the signing secret, after
					Standard Webhooks.
				</p>
				<p className="text-muted">
					Answer 401 to what does not match. The same event can come twice: remember{" "}
					<code className="font-mono text-12">webhook-id</code> and pass over what you know.
				</p>
			</div>
			<Tabs
				label="Language"
				value={language}
				onChange={setLanguage}
				tabs={examples.map((example) => ({
					value: example.language,
					label: example.language,
					content: <CodeBlock label={`${example.language} example`} code={example.code} />,
				}))}
			/>
		</Card>
	);
}
