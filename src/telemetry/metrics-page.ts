import { METRIC_AREAS, type MetricDeclaration } from '../contract/metrics/declaration.js'
import { METRICS } from '../contract/metrics/metrics.js'

const OPENING = `# Metrics

\`GET /metrics\` on the management port answers in the text format of Prometheus. It wakes no database.

\`\`\`yaml
scrape_configs:
  - job_name: homeport
    static_configs: [{ targets: ['127.0.0.1:8700'] }]
    authorization: { credentials_file: /etc/prometheus/homeport-token }
\`\`\`

## Who sees what

| credentials | metrics |
| --- | --- |
| the option [\`metricsToken\`](configuration.md#metricstoken), as a bearer token | the whole server, and the databases of all accounts |
| an API key of the first account; use a read-only one, with \`basic_auth\` | the whole server, and the account's own databases |
| an API key of another account or of a team | its own databases |

The token gives access to this page only. Create it with \`openssl rand -hex 24\`.

## Several nodes

Each [node](nodes.md) reports only its own figures. Scrape every node at its own address, not through the load balancer, which
would reach another node each time:

\`\`\`yaml
    static_configs: [{ targets: ['10.0.0.5:8700', '10.0.0.6:8700', '10.0.0.7:8700'] }]
\`\`\`

| figures | of the whole cluster |
| --- | --- |
| counters and histograms | \`sum without (instance) (…)\` |
| what the store has: \`homeport_queue_messages\`, \`homeport_queue_oldest_due_age_seconds\`, \`homeport_queue_schedule_delay_seconds\`, \`homeport_workflow_runs\`, \`homeport_workflow_waits\` | the same on all nodes: \`max without (instance) (…)\` |
| a database: \`homeport_database_…\` | its home has them, and no other node |
| \`homeport_databases\`, \`homeport_problems\`, connections, memory, disk, process | of each node by itself; \`sum\` adds them up |

The dashboard shows the maximum over the nodes of the figures from the store. If Prometheus scrapes several servers or clusters,
give the targets of each a label \`cluster\`: the dashboard then adds them up.

## What to know

- Counters (\`_total\`) and histograms begin at 0 with the server process.
- Labels are few. Only the metrics of single databases have a series for each database: at most
  [\`metricsDatabases\`](configuration.md#metricsdatabases) of them, those that were used last. Destination hosts have series
  only with [\`metricsEndpoints\`](configuration.md#metricsendpoints); hosts beyond that number are counted as \`other\`.
  The average time of a delivery to a host is
  \`rate(homeport_endpoint_delivery_seconds_total[5m]) / on (host) sum by (host) (rate(homeport_endpoint_deliveries_total[5m]))\`.
- Counting what is stored (\`homeport_queue_messages\`, \`homeport_workflow_runs\`, \`homeport_workflow_waits\`) takes at most
  about 5 % of the time of one thread: Homeport counts in slices when it is scraped, not more often than every 15 seconds,
  and less often when there are millions. A first scrape of such a server may lack these figures.
- \`homeport_queue_oldest_due_age_seconds\` also counts a message that a flow-control key holds back or has paused.
- When a database is deleted between two scrapes, its commands since the earlier one are missing from the totals of the gateway.
- While the store does not answer, the figures from the store are missing from the scrape.

## Over OTLP

The same metrics are pushed to a collector when \`OTEL_EXPORTER_OTLP_ENDPOINT\` is set: [traces.md](traces.md).

## Grafana and alerts

- \`deploy/dashboard.json\`: a dashboard for all areas. Import it in Grafana under Dashboards, New, Import. Its panels by
  host are empty unless [\`metricsEndpoints\`](configuration.md#metricsendpoints) is set.
- \`deploy/alerts.yaml\`: alert rules for Prometheus; name the file in \`rule_files\`. The rules expect \`job_name: homeport\`.
- \`deploy/compose.monitoring.yaml\` starts Prometheus and Grafana with both beside a server.

This page is generated from the declarations in \`src/contract/metrics/\` by \`npm run docs\`.
`

function table(area: (typeof METRIC_AREAS)[number]): string {
  const rows = Object.entries<MetricDeclaration>(METRICS)
    .filter(([, declared]) => declared.area === area)
    .map(([name, { kind, labels, help }]) => `| \`${name}\` | ${kind} | ${labels.join(', ')} | ${help} |`)
  return [`## ${area}`, '', '| metric | kind | labels | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

/** The page `docs/metrics.md`, from the declarations. */
export function metricsPage(): string {
  return `${[OPENING.trimEnd(), ...METRIC_AREAS.map(table)].join('\n\n')}\n`
}
