import IconPlayerPause from 'icon:player-pause'
import IconPlayerPlay from 'icon:player-play'
import IconPlayerStop from 'icon:player-stop'
import { Button, Group, NumberInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { getBulkAction, listBulkActions, listBulkOutcomes } from '../../../../src/contract/bulk/actions.js'
import {
  abortBulkAction,
  changeBulkAction,
  liftBulkFence,
  pauseBulkAction,
  resumeBulkAction,
} from '../../../../src/contract/bulk/control.js'
import { undoBulkAction } from '../../../../src/contract/bulk/undo.js'
import { api } from '../../api/client.js'
import { useChange } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { Fact } from '../../components/copy.js'
import { UndoButton } from '../../components/undo.js'
import { useDraft } from '../../components/use-draft.js'
import { useNow, When } from '../../components/when.js'
import { counted, whole } from '../../lib/format.js'
import { type Action, isOver } from './words.js'

const READS = [getBulkAction, listBulkActions, listBulkOutcomes]

/** Pause, resume and abort. */
export function Controls({ action }: { action: Action }) {
  const canWrite = useCanWrite()
  const pause = useChange(pauseBulkAction, { refreshes: READS })
  const resume = useChange(resumeBulkAction, { refreshes: READS })
  if (!canWrite) return null
  if (isOver(action)) return action.undo === undefined ? null : <UndoAction action={action} />
  const args = { params: { actionId: action.actionId }, body: undefined }
  return (
    <>
      {action.state === 'paused' ? (
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          loading={resume.isPending}
          onClick={() => resume.mutate(args)}
        >
          Resume
        </Button>
      ) : (
        <Button
          variant="default"
          leftSection={<IconPlayerPause size={16} />}
          loading={pause.isPending}
          onClick={() => pause.mutate(args)}
        >
          Pause
        </Button>
      )}
      <Button color="red.9" leftSection={<IconPlayerStop size={16} />} onClick={() => askAbort(action)}>
        Abort
      </Button>
    </>
  )
}

/** Undoes a cancel, and opens the bulk action of the undo. */
function UndoAction({ action: { actionId, kind, cancelled = 0 } }: { action: Action }) {
  const navigate = useNavigate()
  const what = counted(cancelled, kind === 'cancelRuns' ? 'run' : 'message')
  return (
    <UndoButton
      undo={{
        title: 'Undo this cancel',
        text: `It cancelled ${what}. Those that are still cancelled continue where they stood; requests that were in flight are sent again. Runs that match a fence stay cancelled: lift the fence first.`,
        action: 'Bring them back',
        refreshes: READS,
        onAnswer: async (body) => {
          const undo = await api(undoBulkAction, { params: { actionId }, body })
          await navigate({ to: '/bulk-actions/$id', params: { id: undo.actionId } })
        },
      }}
    />
  )
}

const askAbort = ({ actionId, matched, done }: Action) =>
  confirm({
    title: 'Abort this action',
    text: `Finished items stay as they are. The other ${whole(matched - done)} are skipped, and matching runs may start again.`,
    action: 'Abort the action',
    onConfirm: () => api(abortBulkAction, { params: { actionId }, body: undefined }),
    refreshes: READS,
  })

/** The rate limit, which can be changed while the action runs. */
export function Rate({ action }: { action: Action }) {
  const canWrite = useCanWrite()
  const { value: typed, set: setTyped, forget } = useDraft<number | ''>(action.ratePerSecond ?? '')
  const change = useChange(changeBulkAction, { refreshes: READS, done: 'The rate was changed.' })
  const text = action.ratePerSecond === undefined ? 'no limit' : `${counted(action.ratePerSecond, 'item')} per second`
  if (!canWrite || isOver(action)) return <Fact name="Rate">{text}</Fact>
  const args = { params: { actionId: action.actionId }, body: { ratePerSecond: typed === '' ? null : typed } }
  return (
    <Fact name="Rate">
      <Group gap={6}>
        <NumberInput
          aria-label="Items per second"
          placeholder="No limit"
          size="xs"
          w={150}
          suffix=" per second"
          min={1}
          allowDecimal={false}
          allowNegative={false}
          value={typed}
          onChange={(value) => setTyped(typeof value === 'number' ? value : '')}
        />
        <Button
          size="compact-xs"
          variant="default"
          disabled={typed === (action.ratePerSecond ?? '')}
          loading={change.isPending}
          onClick={() => change.mutate(args, { onSuccess: forget })}
        >
          Change the rate
        </Button>
      </Group>
    </Fact>
  )
}

/** The fence: until when matching triggers are refused. */
export function Fence({ action: { actionId, fenceUntil } }: { action: Action }) {
  const canWrite = useCanWrite()
  const now = useNow()
  const lift = useChange(liftBulkFence, { refreshes: READS, done: 'Matching runs may start again.' })
  if (fenceUntil === undefined) return null
  return (
    <Fact name="Refuses new runs">
      <Group gap={6}>
        until <When atMs={fenceUntil} />
        {canWrite && fenceUntil > now ? (
          <Button
            size="compact-xs"
            variant="default"
            loading={lift.isPending}
            onClick={() => lift.mutate({ params: { actionId } })}
          >
            Lift the fence
          </Button>
        ) : null}
      </Group>
    </Fact>
  )
}
