import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function AccountPage() {
	return (
		<Page>
			<PageHeader title="Your account" />
			<Card>
				<EmptyState title="Nothing to set." />
			</Card>
		</Page>
	);
}
