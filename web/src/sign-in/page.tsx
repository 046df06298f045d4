import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function SignIn() {
	return (
		<Page>
			<PageHeader title="Sign in" />
			<Card>
				<EmptyState title="Sign in" />
			</Card>
		</Page>
	);
}
