import IconCircleCheck from 'icon:circle-check'
import IconDatabasePlus from 'icon:database-plus'
import IconSend from 'icon:send'
import { Group, List, SimpleGrid, Stack, Text } from '@mantine/core'
import { type AuditLog, listAuditLogs } from '../../../../src/contract/accounts/audit.js'
import { getOverview, MAX_COUNTED, type Overview } from '../../../../src/contract/console/console.js'
import { CALM_MS, LIVE_MS, useApi } from '../../api/hooks.js'
import { useCanWrite, useSettings } from '../../api/session.js'
import { CodeBlock, Fact } from '../../components/copy.js'
import { Figure } from '../../components/figure.js'
import { ButtonLink, TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { Loaded } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { Term } from '../../components/term.js'
import { useNow, When } from '../../components/when.js'
import { bytes, capped, percent, whole } from '../../lib/format.js'
import { ActivityPanel } from './activity.js'
import { concernsOf } from './attention.js'
import { changeOf } from './changes.js'

/** The home page: counts, attention items, latest changes and health. */
export function HomePage() {
  const overview = useApi(getOverview, {}, { everyMs: LIVE_MS })
  return (
    <Page title="Home" about="The health of this server, what runs on it, and what needs attention.">
      <Loaded query={overview}>{(data) => <Everything overview={data} />}</Loaded>
    </Page>
  )
}

function Everything({ overview }: { overview: Overview }) {
  const { databases } = overview
  const canWrite = useCanWrite()
  const isNew = databases.active + databases.passive + databases.suspended === 0
  return (
    <Stack gap="lg">
      {isNew && canWrite ? <FirstSteps /> : null}
      <Work overview={overview} />
      <ActivityPanel />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Stack gap="lg" miw={0}>
          <Attention overview={overview} />
          <LatestChanges />
        </Stack>
        <Health overview={overview} />
      </SimpleGrid>
    </Stack>
  )
}

function Work({ overview: { databases, messages, runs, bulk_actions } }: { overview: Overview }) {
  const all = databases.active + databases.passive + databases.suspended
  const asleep = databases.passive === 0 ? '' : `, ${whole(databases.passive)} asleep`
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      <Figure label="Databases" to="/databases" value={whole(all)} note={`${whole(databases.active)} awake${asleep}`} />
      <Figure
        label="Pending messages"
        to="/messages"
        value={capped(messages.waiting, messages.waiting_at_least ? messages.waiting : MAX_COUNTED)}
        note={`${capped(messages.dead, MAX_COUNTED)} dead ${messages.dead === 1 ? 'letter' : 'letters'}`}
      />
      <Figure
        label="Active runs"
        to="/runs"
        value={capped(runs.unfinished, MAX_COUNTED)}
        note={`${capped(runs.dead, MAX_COUNTED)} failed`}
      />
      <Figure
        label="Active bulk actions"
        to="/bulk-actions"
        value={whole(bulk_actions.unfinished)}
        note="on runs, messages or dead letters"
      />
    </SimpleGrid>
  )
}

function Attention({ overview }: { overview: Overview }) {
  const concerns = concernsOf(overview, useNow())
  return (
    <Panel title="Needs attention">
      {concerns.length === 0 ? (
        <Group gap="sm" wrap="nowrap">
          <IconCircleCheck size={22} color="var(--hp-ok)" aria-hidden />
          <Text size="sm">Nothing needs attention.</Text>
        </Group>
      ) : (
        <Stack gap="md">
          {concerns.map(({ key, tone, title, advice, to }) => (
            <Stack key={key} gap={2}>
              <Status tone={tone}>{to === undefined ? title : <PathLink to={to}>{title}</PathLink>}</Status>
              <Text size="sm" c="dimmed" pl={15}>
                {advice}
              </Text>
            </Stack>
          ))}
        </Stack>
      )}
    </Panel>
  )
}

function PathLink({ to, children }: { to: string; children: string }) {
  return <TextLink to={to}>{children}</TextLink>
}

const LATEST = { query: { limit: 6 } }

function LatestChanges() {
  const log = useApi(listAuditLogs, LATEST, { everyMs: CALM_MS })
  return (
    <Panel title="Latest changes" actions={<TextLink to="/audit">Audit log</TextLink>}>
      <Loaded query={log}>
        {(entries) =>
          entries.length === 0 ? (
            <Text size="sm" c="dimmed">
              Nothing has been changed yet.
            </Text>
          ) : (
            entries.map((entry) => (
              <Group key={entry.log_id} justify="space-between" wrap="nowrap" gap="sm" py={4} align="flex-start">
                <ChangeLine entry={entry} />
                <Text size="sm" c="dimmed" component="div" style={{ whiteSpace: 'nowrap' }}>
                  <When atMs={entry.timestamp * 1000} />
                </Text>
              </Group>
            ))
          )
        }
      </Loaded>
    </Panel>
  )
}

function ChangeLine({ entry }: { entry: AuditLog }) {
  const { actor, did, thing, to } = changeOf(entry)
  return (
    <Text size="sm" component="div" style={{ overflowWrap: 'anywhere' }}>
      <b style={{ fontWeight: 550 }}>{actor}</b> {did}{' '}
      {to === undefined ? (
        thing
      ) : (
        <TextLink to={to} underline="always">
          {thing}
        </TextLink>
      )}
    </Text>
  )
}

function Health({ overview: { engine, store, tls, disk, memory, started_at } }: { overview: Overview }) {
  return (
    <Panel title="Health">
      <Fact name="Engine">
        <Status tone={engine.problems.length === 0 ? 'ok' : 'bad'}>
          {engine.kind === 'valkey' ? 'Valkey' : 'Redis'} {engine.version}
        </Status>
      </Fact>
      <Fact name="Store">{store.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}</Fact>
      <Fact name="TLS for new databases">{tls.by_default ? 'on' : 'off'}</Fact>
      <Fact name="Certificate">
        {tls.certificate_expires_at === undefined ? (
          <Status tone="bad">none that can be used</Status>
        ) : (
          <>
            expires <When atMs={tls.certificate_expires_at * 1000} />
          </>
        )}
      </Fact>
      <Fact name="Disk">
        {bytes(disk.free_bytes)} free of {bytes(disk.total_bytes)} ({percent(disk.free_bytes / disk.total_bytes)})
      </Fact>
      <Fact name="Memory of the server">{bytes(memory.resident_bytes)}</Fact>
      <Fact name="Started">
        <When atMs={started_at * 1000} />
      </Fact>
      <Text size="sm" c="dimmed" mt="xs">
        Durability: {store.durability}
      </Text>
    </Panel>
  )
}

function FirstSteps() {
  const { queue_url } = useSettings()
  return (
    <Panel title="First steps">
      <List type="ordered" spacing="md" size="sm">
        <List.Item>
          <Stack gap="xs" align="flex-start">
            <Text size="sm">Create a database and connect to it with any Redis client, or over HTTP.</Text>
            <ButtonLink to="/databases" search={{ create: true }} leftSection={<IconDatabasePlus size={16} />}>
              Create a database
            </ButtonLink>
          </Stack>
        </List.Item>
        <List.Item>
          <Stack gap="xs" align="flex-start">
            <Text size="sm">Publish a message. The server delivers it to your URL and retries failed deliveries.</Text>
            <ButtonLink
              variant="default"
              to="/messages"
              search={{ publish: true }}
              leftSection={<IconSend size={16} />}
            >
              Publish a message
            </ButtonLink>
            <CodeBlock
              label="Publish a message with curl"
              code={`curl -X POST ${queue_url}/v2/publish/https://example.com/hook \\\n  -H "Authorization: Bearer $QSTASH_TOKEN" -d '{"hello":"world"}'`}
            />
            <Text size="xs" c="dimmed">
              QSTASH_TOKEN is a{' '}
              <TextLink to="/queue-tokens" fz="xs" underline="always">
                queue token
              </TextLink>
              . The command <Term>homeport env</Term> prints that of the first account.
            </Text>
          </Stack>
        </List.Item>
      </List>
    </Panel>
  )
}
