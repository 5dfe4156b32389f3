import { Stack, Stepper } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useDebouncedValue, useMediaQuery } from '@mantine/hooks'
import { getRouteApi, useLocation, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { useCanWrite } from '../../api/session.js'
import { Page } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { given } from '../../lib/search.js'
import { DELIVERY_RULES } from '../queue/delivery-form.js'
import { CheckStep } from './check-step.js'
import { ChooseStep } from './choose-step.js'
import { ConfirmStep } from './confirm-step.js'
import { addressOf, type Choice, hasConditions, kindOf, NO_SETTINGS, type Settings } from './selector.js'
import { useDryRun } from './use-dry-run.js'
import { KIND_WORDS } from './words.js'

const route = getRouteApi('/shell/bulk-actions/new')
const TYPING_MS = 400

const STEPS = ['choose', 'check', 'confirm'] as const
type StepName = (typeof STEPS)[number]

declare module '@tanstack/react-router' {
  interface HistoryState {
    /** The IDs of the wizard. They are not in the address, because servers refuse addresses with thousands of IDs. */
    ids?: readonly string[]
  }
}

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
  const { choice, change, asked, go } = useChoice()
  const form = useForm<Settings>({
    initialValues: NO_SETTINGS,
    validateInputOnChange: true,
    validate: { delay: DELIVERY_RULES.delay },
  })
  /** The number of matches of the present choice, which the user confirms. */
  const [matched, setMatched] = useState<number | undefined>()
  const [settled] = useDebouncedValue(choice, TYPING_MS)
  const dryRun = useDryRun(settled)
  const isSettled = settled === choice
  // After a reload, the settings of the second step are gone.
  const step = asked === 'confirm' && (matched === undefined || !form.isValid()) ? 'check' : asked
  const top = useFocusOn(step)
  const isWide = useMediaQuery('(min-width: 48em)')
  const described = (description: string) => (isWide ? { description } : {})
  const select = (next: Choice) => {
    setMatched(undefined)
    // A fence cannot test conditions.
    if (hasConditions(next)) form.setFieldValue('fenceMs', 0)
    change(next)
  }
  return (
    <Stack
      gap="lg"
      ref={top}
      tabIndex={-1}
      role="group"
      aria-label={`Step ${STEPS.indexOf(step) + 1} of ${STEPS.length}`}
      style={{ outline: 'none', scrollMarginTop: 140 }}
    >
      <Stepper
        active={STEPS.indexOf(step)}
        size="sm"
        iconSize={isWide ? 30 : 24}
        wrap={false}
        styles={isWide ? {} : { stepLabel: { whiteSpace: 'nowrap' }, separator: { marginInline: 6, minWidth: 0 } }}
        onStepClick={(index) => go(STEPS[index] ?? 'choose')}
        allowNextStepsSelect={false}
      >
        <Stepper.Step label="Select" {...described(KIND_WORDS[kindOf(choice)].title)} />
        <Stepper.Step label="Check" {...described('Number of matches')} />
        <Stepper.Step label="Confirm" {...described('Type the number')} />
      </Stepper>
      {step === 'choose' ? (
        <ChooseStep
          choice={choice}
          onChange={select}
          dryRun={dryRun}
          isSettled={isSettled}
          onNext={() => go('check')}
        />
      ) : step === 'confirm' && matched !== undefined ? (
        <ConfirmStep choice={choice} settings={form.values} matched={matched} onBack={() => go('check')} />
      ) : isSettled ? (
        <CheckStep
          choice={choice}
          form={form}
          dryRun={dryRun}
          onBack={() => go('choose')}
          onNext={(count) => {
            setMatched(count)
            go('confirm')
          }}
        />
      ) : (
        <Loading />
      )}
    </Stack>
  )
}

/** The choice and the step. Each step is an entry of the browser's history, and each shows the present choice. */
function useChoice() {
  const navigate = useNavigate()
  const { step, ...search } = route.useSearch()
  const asked: StepName = step ?? 'choose'
  const { state } = useLocation()
  const [choice, setChoice] = useState<Choice>(() => ({ ...given({ ids: state.ids }), ...search }))
  const show = (next: Choice, at: StepName, replace: boolean) =>
    void navigate({
      to: '/bulk-actions/new',
      search: { ...addressOf(next), ...(at !== 'choose' && { step: at }) },
      state: given({ ids: next.ids }),
      replace,
    })
  // biome-ignore lint/correctness/useExhaustiveDependencies: Forward leads to an entry that may have an older choice.
  useEffect(() => show(choice, asked, true), [asked])
  return {
    choice,
    asked,
    change: (next: Choice) => {
      setChoice(next)
      show(next, 'choose', true)
    },
    go: (to: StepName) => show(choice, to, false),
  }
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
