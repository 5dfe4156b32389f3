import { getRouteApi } from '@tanstack/react-router'
import { selectorText } from '../../../../src/contract/words/selector.js'
import { CodeBlock, Fact } from '../../components/copy.js'
import { Page, Panel } from '../../components/page.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { serverMs } from '../../lib/clock.js'
import { counted, dateTime, duration } from '../../lib/format.js'
import { Controls, Fence, Rate } from './controls.js'
import { Outcomes } from './outcomes.js'
import { ProgressPanel } from './progress.js'
import { useAction } from './use-action.js'
import { type Action, KIND_WORDS, STATE_WORDS } from './words.js'

const route = getRouteApi('/shell/bulk-actions/$id')

const MISSING = (
  <EmptyState title="Bulk action not found">
    It may have been deleted: the configuration limits how long ended actions are kept.
  </EmptyState>
)

/** One bulk action: its progress, its controls, and the outcome of each item. */
export function BulkActionPage() {
  const { id } = route.useParams()
  const { outcome } = route.useSearch()
  const query = useAction(id)
  const action = query.data
  return (
    <Page
      title={action === undefined ? id : KIND_WORDS[action.kind].title}
      crumbs={[{ label: 'Bulk actions', to: '/bulk-actions' }]}
      badge={action === undefined ? undefined : <State action={action} />}
      actions={action === undefined ? undefined : <Controls action={action} />}
    >
      <Loaded query={query} loading={<LoadingLines />} missing={MISSING}>
        {(found) => (
          <>
            <ProgressPanel action={found} nowMs={serverMs(query.dataUpdatedAt)} />
            <Details action={found} />
            <Outcomes action={found} outcome={outcome} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function State({ action: { state } }: { action: Action }) {
  return <Status tone={STATE_WORDS[state].tone}>{STATE_WORDS[state].title}</Status>
}

function Details({ action }: { action: Action }) {
  const { actionId, unreadable, reason, createdBy, createdAt, pausedAt, finishedAt } = action
  return (
    <Panel title="Details">
      <Fact name="ID" copy={actionId}>
        {actionId}
      </Fact>
      <Fact name="Selection">{selectorText(action, dateTime)}</Fact>
      {unreadable === undefined ? null : (
        <Fact name="Could not be read">{counted(unreadable, 'item')}, and so did not match</Fact>
      )}
      {reason === undefined ? null : <Fact name="Reason">{reason}</Fact>}
      <Fact name="Started">
        <When atMs={createdAt} /> by {createdBy}
      </Fact>
      {pausedAt === undefined ? null : (
        <Fact name="Paused since">
          <When atMs={pausedAt} />
        </Fact>
      )}
      {finishedAt === undefined ? null : (
        <Fact name="Ended">
          {dateTime(finishedAt)}, after {duration(finishedAt - createdAt)}
        </Fact>
      )}
      <Rate action={action} />
      <Fence action={action} />
      <div style={{ marginTop: 12 }}>
        <CodeBlock label="Watch it in a terminal" code={`homeport bulk watch ${actionId}`} />
      </div>
    </Panel>
  )
}
