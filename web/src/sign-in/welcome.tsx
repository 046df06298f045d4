import { useState } from "react";
import { direct, got } from "@/api/client";
import { Dead } from "./dead";
import { useEnter } from "./enter";
import { EmailField, NameField, PasswordField } from "./fields";
import { Form } from "./form";
import { Frame } from "./frame";
import { useToken } from "./token";

/** Welcome makes the first account, from the link that the server prints. */
export default function Welcome() {
	const token = useToken();
	const [name, setName] = useState("");
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const { enter, busy, error, whole } = useEnter(
		() => got(direct.POST("/ui/v1/welcome", { body: { token, name, email, password } })),
		"/first",
	);
	if (token === "") return <Dead>Copy the whole link that the server printed, with what stands behind the #.</Dead>;
	if (error?.code === "link_not_found") {
		return (
			<Dead>
				It was used already, or it is older than 24 hours. Starting the server again prints a new one, if nobody can
				sign in yet.
			</Dead>
		);
	}
	return (
		<Frame title="Welcome to Stepmill" lead="Create the account of the owner. Others can be invited later.">
			<Form verb="Create account" busy={busy} error={whole} onSubmit={() => enter(undefined)}>
				<NameField value={name} onChange={setName} error={error} autoFocus />
				<EmailField value={email} onChange={setEmail} error={error} />
				<PasswordField value={password} onChange={setPassword} error={error} fresh />
			</Form>
		</Frame>
	);
}
