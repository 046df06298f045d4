import Stripe from "stripe";

// list reads pages until there are enough items.
async function list(method, params, { limit = 100, all }) {
  let count = 0;
  let starting_after;
  do {
    const page = await method({ ...params, starting_after, limit: all ? 100 : Math.min(limit, 100) });
    count += page.data.length;
    starting_after = page.has_more ? page.data.at(-1).id : undefined;
  } while (starting_after && (all || count < limit));
}

// search does the same for searches.
async function search(method, query, { limit = 100, all }) {
  let count = 0;
  let page;
  do {
    const found = await method({ query, page, limit: all ? 100 : Math.min(limit, 100) });
    count += found.data.length;
    page = found.next_page ?? undefined;
  } while (page && (all || count < limit));
}

const seconds = (time) => time && Date.parse(time) / 1000;
const created = ({ since, until }) => (since || until ? { gte: seconds(since), lt: seconds(until) } : undefined);

// events reads a page of the events since the cursor.
const events = (stripe, { cursor }, params) =>
  stripe.events.list({ ...params, created: { gte: cursor?.since ?? seconds("2026-11-18T08:45:00Z") }, limit: 100, starting_after: cursor?.after });
const lines = (items) => items.map(({ price, quantity = 1 }) => ({ price, quantity }));
const customer = ({ email, name, phone, description, address, metadata }) => ({ email, name, phone, description, address, metadata });

/** @type {import("../service.d.ts").Service<Stripe>} */
export default {
  client: "stripe",
  auth: "bearer",
  secrets: { token: "sk_test_made-up" },
  headers: ["stripe-version"],
  connect: ({ at, secrets }) => {
    const { protocol, hostname, port, pathname } = new URL(at("https://api.stripe.com"));
    // The client has no option for the path, which names the host here.
    const http = Stripe.createNodeHttpClient();
    const makeRequest = http.makeRequest.bind(http);
    http.makeRequest = (host, itsPort, path, ...rest) => makeRequest(host, itsPort, pathname + path, ...rest);
    return new Stripe(secrets.token, { protocol: protocol === "http:" ? "http" : "https", host: hostname, port, httpClient: http, maxNetworkRetries: 0, telemetry: false });
  },
  operations: {
    "hooks/endpoint": (stripe, i) =>
      i.does === "register"
        ? stripe.webhookEndpoints.create({ url: i.hook.url, enabled_events: i.events, api_version: "2026-10-28.endive" }, { idempotencyKey: i.hook.id })
        : stripe.webhookEndpoints.del(i.subscription.id),
    create_customer: (stripe, i) => stripe.customers.create(customer(i)),
    update_customer: (stripe, i) => stripe.customers.update(i.customer, customer(i)),
    get_customer: (stripe, i) => stripe.customers.retrieve(i.customer),
    find_customer: (stripe, i) => stripe.customers.list({ email: i.email, limit: 1 }),
    list_customers: (stripe, i) => list((p) => stripe.customers.list(p), { email: i.email, created: created(i) }, i),
    delete_customer: (stripe, i) => stripe.customers.del(i.customer),
    create_payment: (stripe, i) =>
      stripe.paymentIntents.create({
        amount: i.amount,
        currency: i.currency.toLowerCase(),
        customer: i.customer,
        payment_method: i.payment_method,
        ...(i.charge
          ? { confirm: true, off_session: true, automatic_payment_methods: { enabled: true, allow_redirects: "never" } }
          : { automatic_payment_methods: { enabled: true } }),
        capture_method: i.capture_later ? "manual" : undefined,
        description: i.description,
        receipt_email: i.receipt_email,
        metadata: i.metadata,
      }),
    get_payment: (stripe, i) => stripe.paymentIntents.retrieve(i.payment),
    list_payments: (stripe, i) => list((p) => stripe.paymentIntents.list(p), { customer: i.customer, created: created(i) }, i),
    capture_payment: (stripe, i) => stripe.paymentIntents.capture(i.payment, { amount_to_capture: i.amount }),
    cancel_payment: (stripe, i) => stripe.paymentIntents.cancel(i.payment, { cancellation_reason: i.reason }),
    refund_payment: (stripe, { payment, ...i }) => stripe.refunds.create({ ...(payment.startsWith("pi_") ? { payment_intent: payment } : { charge: payment }), ...i }),
    create_checkout_session: (stripe, i) =>
      stripe.checkout.sessions.create({
        mode: i.mode ?? "payment",
        line_items: lines(i.items),
        success_url: i.success_url,
        cancel_url: i.cancel_url,
        customer: i.customer,
        customer_email: i.customer_email,
        client_reference_id: i.reference,
        allow_promotion_codes: i.allow_promotion_codes,
        expires_at: seconds(i.expires),
        metadata: i.metadata,
      }),
    get_checkout_session: (stripe, i) => stripe.checkout.sessions.retrieve(i.session, { expand: ["line_items"] }),
    create_payment_link: (stripe, i) =>
      stripe.paymentLinks.create({
        line_items: lines(i.items),
        allow_promotion_codes: i.allow_promotion_codes,
        after_completion: i.after_url && { type: "redirect", redirect: { url: i.after_url } },
        metadata: i.metadata,
      }),
    create_product: (stripe, { name, description, images, metadata }) => stripe.products.create({ name, description, images, metadata }),
    list_products: (stripe, i) => list((p) => stripe.products.list(p), { active: true }, i),
    create_price: (stripe, i) =>
      stripe.prices.create({
        product: i.product,
        unit_amount: i.amount,
        currency: i.currency.toLowerCase(),
        recurring: i.every && { interval: i.every, interval_count: i.interval_count },
        nickname: i.nickname,
        metadata: i.metadata,
      }),
    list_prices: (stripe, i) => list((p) => stripe.prices.list(p), { active: true, product: i.product, expand: ["data.product"] }, i),
    create_invoice: async (stripe, { next = "draft", days_until_due = 30, ...i }) => {
      const { id } = await stripe.invoices.create({
        customer: i.customer,
        currency: i.currency?.toLowerCase(),
        ...(i.charge ? { collection_method: "charge_automatically" } : { collection_method: "send_invoice", days_until_due }),
        auto_advance: Boolean(i.charge) && next !== "draft",
        description: i.description,
        metadata: i.metadata,
      });
      const added = i.lines.map(({ description, amount, price, quantity }) => ({ description, amount, pricing: price && { price }, quantity }));
      await stripe.invoices.addLines(id, { lines: added });
      if (next === "finalize") await stripe.invoices.finalizeInvoice(id);
      if (next === "send") await stripe.invoices.sendInvoice(id);
    },
    send_invoice: (stripe, i) => stripe.invoices.sendInvoice(i.invoice),
    get_invoice: (stripe, i) => stripe.invoices.retrieve(i.invoice),
    list_invoices: (stripe, i) =>
      list((p) => stripe.invoices.list(p), { customer: i.customer, status: i.status, subscription: i.subscription, created: created(i) }, i),
    create_subscription: (stripe, i) =>
      stripe.subscriptions.create({
        customer: i.customer,
        items: lines(i.items),
        trial_period_days: i.trial_days,
        default_payment_method: i.payment_method,
        ...(i.days_until_due && { collection_method: "send_invoice", days_until_due: i.days_until_due }),
        discounts: i.coupon && [{ coupon: i.coupon }],
        metadata: i.metadata,
      }),
    get_subscription: (stripe, i) => stripe.subscriptions.retrieve(i.subscription),
    list_subscriptions: (stripe, i) =>
      list((p) => stripe.subscriptions.list(p), { customer: i.customer, price: i.price, status: i.status, created: created(i) }, i),
    cancel_subscription: (stripe, i) =>
      i.when === "now" ? stripe.subscriptions.cancel(i.subscription) : stripe.subscriptions.update(i.subscription, { cancel_at_period_end: true }),
    search: (stripe, { object = "customers", query, ...i }) => {
      const method = {
        customers: (p) => stripe.customers.search(p),
        charges: (p) => stripe.charges.search(p),
        invoices: (p) => stripe.invoices.search(p),
        payment_intents: (p) => stripe.paymentIntents.search(p),
        prices: (p) => stripe.prices.search(p),
        products: (p) => stripe.products.search(p),
        subscriptions: (p) => stripe.subscriptions.search(p),
      }[object];
      return search(method, query, i);
    },
    get_balance: (stripe) => stripe.balance.retrieve(),
    list_balance_transactions: (stripe, i) => list((p) => stripe.balanceTransactions.list(p), { type: i.type, payout: i.payout, created: created(i) }, i),
    list_customer_choices: (stripe, i) => {
      if ((i.search ?? "").length < 3) return list((p) => stripe.customers.list(p), {}, i);
      const text = `"${i.search.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
      return search((p) => stripe.customers.search(p), `name~${text} OR email~${text}`, i);
    },
    list_payment_methods: (stripe, i) => list((p) => stripe.customers.listPaymentMethods(i.customer, p), {}, i),
    "triggers/new_event": (stripe, i) => events(stripe, i, { types: i.types }),
    "triggers/new_payment": (stripe, i) => events(stripe, i, { type: "payment_intent.succeeded" }),
    "triggers/new_customer": (stripe, i) => events(stripe, i, { type: "customer.created" }),
    list_coupons: (stripe, i) => list((p) => stripe.coupons.list(p), {}, i),
  },
};
