import { Stack, Stepper } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useDebouncedValue, useMediaQuery } from '@mantine/hooks'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { useCanWrite } from '../../api/session.js'
import { Page } from '../../components/page.js'
import { EmptyState } from '../../components/states.js'
import { DELIVERY_RULES } from '../queue/delivery-form.js'
import { CheckStep } from './check-step.js'
import { ChooseStep } from './choose-step.js'
import { ConfirmStep } from './confirm-step.js'
import { addressOf, type Choice, hasConditions, kindOf, NO_SETTINGS, type Settings } from './selector.js'
import { useDryRun } from './use-dry-run.js'
import { KIND_WORDS } from './words.js'

const route = getRouteApi('/shell/bulk-actions/new')
const TYPING_MS = 400

/** The step of the wizard; `matched` is the number to confirm. */
type Place = { readonly kind: 'choose' } | { readonly kind: 'check' } | { readonly kind: 'confirm'; matched: number }

const POSITIONS: Readonly<Record<Place['kind'], number>> = { choose: 0, check: 1, confirm: 2 }

/** The wizard of a new bulk action: selection, check and confirmation. */
export function WizardPage() {
  const canWrite = useCanWrite()
  return (
    <Page
      title="New bulk action"
      about="Select, check and confirm. Nothing changes before the last step."
      crumbs={[{ label: 'Bulk actions', to: '/bulk-actions' }]}
    >
      {canWrite ? (
        <Wizard />
      ) : (
        <EmptyState title="This key is read-only">
          Sign in with a key that has full access to start a bulk action.
        </EmptyState>
      )}
    </Page>
  )
}

function Wizard() {
  const navigate = useNavigate()
  const [choice, setChoice] = useState<Choice>(route.useSearch())
  const form = useForm<Settings>({
    initialValues: NO_SETTINGS,
    validateInputOnChange: true,
    validate: { delay: DELIVERY_RULES.delay },
  })
  const [place, setPlace] = useState<Place>({ kind: 'choose' })
  const [settled] = useDebouncedValue(choice, TYPING_MS)
  const dryRun = useDryRun(settled)
  const top = useFocusOn(place.kind)
  const isWide = useMediaQuery('(min-width: 48em)')
  const described = (description: string) => (isWide ? { description } : {})
  const change = (next: Choice) => {
    setChoice(next)
    // A fence cannot test conditions.
    if (hasConditions(next)) form.setFieldValue('fenceMs', 0)
    void navigate({ to: '/bulk-actions/new', search: addressOf(next), replace: true })
  }
  return (
    <Stack gap="lg" ref={top} tabIndex={-1} style={{ outline: 'none', scrollMarginTop: 140 }}>
      <Stepper
        active={POSITIONS[place.kind]}
        size="sm"
        iconSize={isWide ? 30 : 24}
        wrap={false}
        styles={isWide ? {} : { stepLabel: { whiteSpace: 'nowrap' }, separator: { marginInline: 6, minWidth: 0 } }}
        onStepClick={(step) => setPlace(step === 0 ? { kind: 'choose' } : { kind: 'check' })}
        allowNextStepsSelect={false}
      >
        <Stepper.Step label="Select" {...described(KIND_WORDS[kindOf(choice)].title)} />
        <Stepper.Step label="Check" {...described('Number of matches')} />
        <Stepper.Step label="Confirm" {...described('Type the number')} />
      </Stepper>
      {place.kind === 'choose' ? (
        <ChooseStep
          choice={choice}
          onChange={change}
          dryRun={dryRun}
          isSettled={settled === choice}
          onNext={() => setPlace({ kind: 'check' })}
        />
      ) : place.kind === 'check' ? (
        <CheckStep
          choice={choice}
          form={form}
          dryRun={dryRun}
          onBack={() => setPlace({ kind: 'choose' })}
          onNext={(matched) => setPlace({ kind: 'confirm', matched })}
        />
      ) : (
        <ConfirmStep
          choice={choice}
          settings={form.values}
          matched={place.matched}
          onBack={() => setPlace({ kind: 'check' })}
        />
      )}
    </Stack>
  )
}

/** Scrolls to the top of a new step and focuses its heading for screen readers. */
function useFocusOn(step: string) {
  const top = useRef<HTMLDivElement>(null)
  const before = useRef(step)
  useEffect(() => {
    if (before.current === step) return
    before.current = step
    // The last step focuses its own field.
    if (!top.current?.contains(document.activeElement)) top.current?.focus()
    window.scrollTo(0, 0)
  }, [step])
  return top
}
