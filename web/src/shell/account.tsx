import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { direct, got } from "@/api/client";
import { type Session, useSession } from "@/api/session";
import { stream } from "@/live/hooks";
import { cx } from "@/ui/class";
import { CheckIcon, ChevronDownIcon, KeyboardIcon, MoonIcon, ScreenIcon, SignOutIcon, SunIcon } from "@/ui/icons";
import { Menu, MenuItem, MenuLabel, MenuLine } from "@/ui/menu";
import { toast } from "@/ui/toast";
import { type Choice, chooseTheme, useChoice } from "./theme";

const themes: { choice: Choice; name: string; icon: typeof SunIcon }[] = [
	{ choice: "system", name: "System", icon: ScreenIcon },
	{ choice: "light", name: "Light", icon: SunIcon },
	{ choice: "dark", name: "Dark", icon: MoonIcon },
];

export function Account({ onShortcuts }: { onShortcuts: () => void }) {
	const session = useSession();
	const choice = useChoice();
	const leave = useSignOut();
	const move = useSwitchWorkspace();
	return (
		<Menu
			align="start"
			trigger={
				<button type="button" className="flex h-11 w-full items-center gap-2 rounded-6 px-2 text-left hover:bg-sunken">
					<span
						aria-hidden="true"
						className="flex size-7 shrink-0 items-center justify-center rounded-full bg-accent-soft text-12 font-semibold text-accent"
					>
						{initial(session)}
					</span>
					<span className="min-w-0 flex-1">
						<span className="block truncate text-12 font-medium">{session.workspace.name}</span>
						<span className="block truncate text-12 text-muted">{session.user.name || session.user.email}</span>
					</span>
					<ChevronDownIcon className="text-muted" />
				</button>
			}
		>
			<MenuLabel>{session.user.email}</MenuLabel>
			{session.workspaces.length > 1 && (
				<>
					<MenuLine />
					<MenuLabel>Workspace</MenuLabel>
					{session.workspaces.map((one) => (
						<MenuItem
							key={one.id}
							onSelect={() => move(one.id)}
							hint={one.id === session.workspace.id && <CheckIcon />}
						>
							{one.name}
						</MenuItem>
					))}
				</>
			)}
			<MenuLine />
			<MenuLabel>Theme</MenuLabel>
			{themes.map((one) => (
				<MenuItem
					key={one.choice}
					icon={one.icon}
					onSelect={() => chooseTheme(one.choice)}
					hint={one.choice === choice && <CheckIcon className={cx("text-accent")} />}
				>
					{one.name}
				</MenuItem>
			))}
			<MenuLine />
			<MenuItem icon={KeyboardIcon} onSelect={onShortcuts} hint="?">
				Keyboard shortcuts
			</MenuItem>
			<MenuItem icon={SignOutIcon} onSelect={leave}>
				Sign out
			</MenuItem>
		</Menu>
	);
}

function initial({ user }: Session): string {
	return (user.name || user.email).trim().charAt(0).toUpperCase();
}

function useSignOut() {
	const client = useQueryClient();
	const navigate = useNavigate();
	return async () => {
		try {
			await direct.DELETE("/ui/v1/session");
			await navigate({ to: "/sign-in" });
			client.clear();
		} catch (error) {
			toast.error(error);
		}
	};
}

/** Clears all cached data, so that nothing from one workspace shows up in another. */
function useSwitchWorkspace() {
	const client = useQueryClient();
	const navigate = useNavigate();
	return async (id: string) => {
		try {
			const session = await got(direct.PATCH("/ui/v1/session", { body: { workspace_id: id } }));
			await navigate({ to: "/workflows" });
			client.clear();
			client.setQueryData(["session"], session);
			stream.reset();
		} catch (error) {
			toast.error(error);
		}
	};
}
