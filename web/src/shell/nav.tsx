import { Link } from "@tanstack/react-router";
import { WaitingCount } from "@/shared/run/approvals-count";
import { cx } from "@/ui/class";
import { Logo } from "@/ui/logo";
import { type NavItem, navItems } from "./nav-items";

const groups: { key: NavItem["group"]; name?: string }[] = [
	{ key: "work" },
	{ key: "connect", name: "Connect" },
	{ key: "manage", name: "Manage" },
];

export function Nav({ onGo }: { onGo?: () => void }) {
	return (
		<nav aria-label="Main" className="flex flex-col gap-4">
			{groups.map(({ key, name }) => (
				<div key={key} className="flex flex-col gap-0.5">
					{name && <p className="px-2 pb-1 text-12 font-medium text-muted">{name}</p>}
					{navItems
						.filter((place) => place.group === key)
						.map((place) => (
							<Item key={place.to} place={place} onGo={onGo} />
						))}
				</div>
			))}
		</nav>
	);
}

function Item({ place, onGo }: { place: NavItem; onGo?: () => void }) {
	return (
		<Link
			to={place.to}
			onClick={onGo}
			activeOptions={{ includeSearch: false }}
			className={cx(
				"flex h-8 items-center gap-2 rounded-6 px-2 font-medium text-muted hover:bg-sunken hover:text-text",
			)}
			activeProps={{ className: "bg-sunken !text-text", "aria-current": "page" }}
		>
			<place.icon />
			<span className="truncate">{place.name}</span>
			{place.to === "/approvals" && <WaitingCount />}
		</Link>
	);
}

export function Brand() {
	return (
		<Link to="/workflows" className="flex h-8 items-center gap-2 rounded-6 px-1.5 text-14 font-semibold text-text">
			<Logo size={20} />
			Stepmill
		</Link>
	);
}
