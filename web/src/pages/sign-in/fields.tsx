import { useState } from "react";
import type { ApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { Field, TextInput } from "@/ui/field";

interface TextProps {
	value: string;
	onChange: (value: string) => void;
	error?: ApiError;
	autoFocus?: boolean;
}

export function EmailField({ value, onChange, error, autoFocus }: TextProps) {
	return (
		<Field label="Email address" error={error?.field("/email")}>
			<TextInput
				type="email"
				name="email"
				autoComplete="username"
				autoFocus={autoFocus}
				value={value}
				onChange={(event) => onChange(event.target.value)}
			/>
		</Field>
	);
}

export function NameField({ value, onChange, error, autoFocus }: TextProps) {
	return (
		<Field label="Your name" error={error?.field("/name")}>
			<TextInput
				name="name"
				autoComplete="name"
				autoFocus={autoFocus}
				value={value}
				onChange={(event) => onChange(event.target.value)}
			/>
		</Field>
	);
}

export interface PasswordFieldProps extends TextProps {
	label?: string;
	/** The user chooses a new password, instead of entering a known one. */
	fresh?: boolean;
}

export function PasswordField({ value, onChange, error, autoFocus, label = "Password", fresh }: PasswordFieldProps) {
	const [shown, setShown] = useState(false);
	return (
		<Field
			label={label}
			error={error?.field("/password")}
			hint={
				fresh && !error?.field("/password") ? "At least 12 characters. Avoid common words and sequences." : undefined
			}
		>
			<span className="relative flex">
				<TextInput
					type={shown ? "text" : "password"}
					name="password"
					autoComplete={fresh ? "new-password" : "current-password"}
					autoFocus={autoFocus}
					className="pr-16"
					value={value}
					onChange={(event) => onChange(event.target.value)}
				/>
				<Button
					kind="quiet"
					small
					className="absolute top-0.5 right-0.5"
					aria-pressed={shown}
					aria-label="Show password"
					onClick={() => setShown(!shown)}
				>
					{shown ? "Hide" : "Show"}
				</Button>
			</span>
		</Field>
	);
}
