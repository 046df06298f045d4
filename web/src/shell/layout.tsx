import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useLayoutEffect, useRef, useState } from "react";
import { stream } from "@/live/hooks";
import { Kbd } from "@/ui/badge";
import { Button, IconButton } from "@/ui/button";
import { Sheet } from "@/ui/dialog";
import { MenuIcon, SearchIcon } from "@/ui/icons";
import { Page } from "@/ui/page";
import { SkeletonRows } from "@/ui/states";
import { Account } from "./account";
import { handleKeyDown, keyLabels, useShortcut } from "./keys";
import { Brand, Nav } from "./nav";
import { navItems } from "./nav-items";
import { Notice } from "./notice";
import { Palette } from "./palette";
import { Shortcuts } from "./shortcuts";

export function Layout() {
	const [palette, setPalette] = useState(false);
	const [keys, setKeys] = useState(false);
	const [menu, setMenu] = useState(false);
	useEffect(() => stream.start(), []);
	useLayoutEffect(() => {
		addEventListener("keydown", handleKeyDown);
		return () => removeEventListener("keydown", handleKeyDown);
	}, []);
	useShortcut("Mod+K", "Search and commands", () => setPalette((open) => !open), "Everywhere");
	useShortcut("?", "Keyboard shortcuts", () => setKeys(true), "Everywhere");
	const main = useFocusOnNavigate();
	return (
		<div className="flex h-full flex-col lg:flex-row">
			<a
				href="#main"
				className="sr-only z-50 rounded-6 bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:absolute focus:top-2 focus:left-2"
			>
				Skip to content
			</a>
			{navItems.map(
				(place) => place.keys && <NavShortcut key={place.to} keys={place.keys} name={place.name} to={place.to} />,
			)}
			<aside className="hidden w-56 shrink-0 flex-col gap-4 border-r bg-surface p-3 lg:flex">
				<Brand />
				<SearchButton onClick={() => setPalette(true)} />
				<div className="-mx-1 min-h-0 flex-1 overflow-y-auto px-1">
					<Nav />
				</div>
				<Account onShortcuts={() => setKeys(true)} />
			</aside>
			<header className="flex h-12 shrink-0 items-center gap-2 border-b bg-surface px-3 lg:hidden">
				<IconButton icon={MenuIcon} label="Navigation" onClick={() => setMenu(true)} />
				<Brand />
				<span className="flex-1" />
				<IconButton icon={SearchIcon} label="Search and commands" onClick={() => setPalette(true)} />
			</header>
			<Sheet open={menu} onOpenChange={setMenu} title="Stepmill" side="left" width={288}>
				<div className="flex flex-col gap-6">
					<Nav onGo={() => setMenu(false)} />
					<Account onShortcuts={() => setKeys(true)} />
				</div>
			</Sheet>
			<div className="flex min-h-0 min-w-0 flex-1 flex-col">
				<Notice />
				<main id="main" ref={main} tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto outline-none">
					<Suspense fallback={<PageSkeleton />}>
						<Outlet />
					</Suspense>
				</main>
			</div>
			<Palette open={palette} onOpenChange={setPalette} />
			<Shortcuts open={keys} onOpenChange={setKeys} />
		</div>
	);
}

function PageSkeleton() {
	return (
		<Page>
			<SkeletonRows label="Loading page" />
		</Page>
	);
}

function SearchButton({ onClick }: { onClick: () => void }) {
	return (
		<Button onClick={onClick} className="w-full !justify-start !border-border !font-normal !text-muted">
			<SearchIcon />
			<span className="flex-1 text-left">Search…</span>
			{keyLabels("Mod+K").map((key) => (
				<Kbd key={key}>{key}</Kbd>
			))}
		</Button>
	);
}

function NavShortcut({ keys, name, to }: { keys: string; name: string; to: string }) {
	const navigate = useNavigate();
	useShortcut(keys, name, () => void navigate({ to }), "Go to");
	return null;
}

/** After navigation the new page starts at the top, with the focus inside it. */
function useFocusOnNavigate() {
	const main = useRef<HTMLElement>(null);
	const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
	const first = useRef(true);
	useEffect(() => {
		if (first.current) {
			first.current = path === undefined;
			return;
		}
		main.current?.scrollTo(0, 0);
		if (!main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true });
	}, [path]);
	return main;
}
