import { useState } from "react";
import { direct, got } from "@/api/client";
import { EmailField, NameField, PasswordField } from "./fields";
import { Form } from "./form";
import { Frame } from "./frame";
import { InvalidLink } from "./invalid-link";
import { useToken } from "./token";
import { useSignIn } from "./use-sign-in";

/** Welcome creates the first account, using the link that the server prints. */
export default function Welcome() {
	const token = useToken();
	const [name, setName] = useState("");
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const { enter, busy, error, whole } = useSignIn(
		() => got(direct.POST("/ui/v1/welcome", { body: { token, name, email, password } })),
		"/first",
	);
	if (token === "")
		return <InvalidLink>Copy the whole link that the server printed, including the part after the #.</InvalidLink>;
	if (error?.code === "link_not_found") {
		return (
			<InvalidLink>
				It has already been used or has expired. If there are no accounts yet, restart the server to print a new one.
			</InvalidLink>
		);
	}
	return (
		<Frame title="Welcome to Stepmill" lead="Create the owner account. You can invite others later.">
			<Form verb="Create account" busy={busy} error={whole} onSubmit={() => enter(undefined)}>
				<NameField value={name} onChange={setName} error={error} autoFocus />
				<EmailField value={email} onChange={setEmail} error={error} />
				<PasswordField value={password} onChange={setPassword} error={error} fresh />
			</Form>
		</Frame>
	);
}
