//! The options themselves: one line each. Nothing here computes.

use super::spec::{Domain, OptionValue, Spec};

macro_rules! domain {
    (check) => { Domain::Check };
    (text) => { Domain::Text };
    (button) => { Domain::Button };
    (spin $min:literal $max:literal) => { Domain::Spin { min: $min, max: $max } };
    (float $min:literal $max:literal) => { Domain::Float { min: $min, max: $max } };
    (combo $($word:literal)+) => { Domain::Combo(&[$($word),+]) };
}

macro_rules! field_type {
    (check) => {
        bool
    };
    (text) => {
        String
    };
    (combo) => {
        String
    };
    (button) => {
        ()
    };
    (spin) => {
        i64
    };
    (float) => {
        f64
    };
}

macro_rules! options {
    ($($key:ident = $uci:literal $(| $alias:literal)*, $kind:ident($($domain:literal)*) $default:expr, $help:literal;)*) => {
        /// Every option with its value; see [`TABLE`] for what they are.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Options {
            $(#[doc = $help] pub $key: field_type!($kind),)*
        }

        impl Default for Options {
            fn default() -> Options {
                Options { $($key: $default.into(),)* }
            }
        }

        /// The declaration of every option, in the order they are listed.
        pub static TABLE: &[Spec] = &[$(Spec {
            key: stringify!($key),
            uci: $uci,
            aliases: &[$($alias),*],
            domain: domain!($kind $($domain)*),
            help: $help,
            default: || {
                let default: field_type!($kind) = $default.into();
                default.into_value()
            },
            get: |options| options.$key.clone().into_value(),
            set: |options, value| {
                if let Some(value) = OptionValue::from_value(value) {
                    options.$key = value;
                }
            },
        }),*];
    };
}

options! {
    weights = "WeightsFile", text() "", "Network file: Lc0 format (.pb, .pb.gz); a relative path is tried from the working folder, then from the program's. Empty: the network inside the binary, else plain material values.";
    backend = "Backend", combo("auto" "torch" "material" "uniform" "random") "auto", "What evaluates positions: auto and torch run the network; the others are stand-ins without one.";
    device = "Device", text() "auto", "Where the network runs: auto (the first GPU, else the CPU), cpu, cuda:N or mps.";
    precision = "Precision", combo("auto" "fp32" "bf16" "fp16") "auto", "Arithmetic of the network; auto times what the device offers.";
    policy_head = "PolicyHead", combo("vanilla" "optimistic" "soft" "opponent") "vanilla", "Which policy head of a network with several.";
    value_head = "ValueHead", combo("winner" "q" "st") "winner", "Which value head of a network with several.";
    history_fill = "HistoryFill", combo("no" "fen_only" "always") "fen_only", "When earlier positions are missing, repeat the oldest one: no, fen_only (unless it is the start position) or always. For Lc0 networks; our own always do.";
    threads = "Threads", spin(0 512) 0, "Cores to use; 0 = all of them.";
    hash = "Hash", spin(1 33554432) 1024, "MiB for the search tree and the evaluation cache together.";
    clear_hash = "Clear Hash", button() (), "Empties the evaluation cache and the search tree.";
    nn_cache_size = "NNCacheSize", spin(0 999999999) 0, "Evaluations kept in the cache; 0 = a quarter of Hash.";
    ram_limit_mb = "RamLimitMb", spin(0 100000000) 0, "MiB the search tree may fill; 0 = its part of Hash.";
    minibatch_size = "MinibatchSize", spin(0 1024) 0, "Leaves per network call; 0 = what suits the device.";
    cache_history_length = "CacheHistoryLength", spin(0 7) 0, "Earlier positions that must agree, besides the current one, for a cached evaluation to be used.";
    ponder = "Ponder", check() false, "The GUI may let the engine think on the opponent's time; nothing needs to be set for it.";
    multi_pv = "MultiPV", spin(1 500) 1, "How many best lines to show.";
    move_overhead_ms = "MoveOverheadMs" | "Move Overhead", spin(0 100000000) 30, "Milliseconds kept back each move for what the GUI and the network in between take.";
    slow_mover = "Slowmover", float(0.0 100.0) 1.0, "Scales the time spent on a move.";
    fixed_nodes = "FixedNodes", spin(0 9223372036854775807) 0, "Search exactly this many nodes whatever the GUI asks for; 0 = off. 1 plays Maia networks as they are meant.";
    syzygy_path = "SyzygyPath", text() "", "Folders with Syzygy tablebases, separated by : or ; (on Windows by ;).";
    syzygy_fast_play = "SyzygyFastPlay", check() true, "In tablebase positions prefer the shortest way by DTZ over the network's own way to win.";
    uci_chess960 = "UCI_Chess960", check() false, "Print castling as king takes rook.";
    uci_show_wdl = "UCI_ShowWDL", check() false, "Show win, draw and loss chances in per mille.";
    uci_show_moves_left = "UCI_ShowMovesLeft", check() false, "Show the expected number of moves left.";
    uci_analyse_mode = "UCI_AnalyseMode", check() false, "Told by GUIs when analysing; nothing changes.";
    uci_opponent = "UCI_Opponent", text() "", "Told by GUIs: who plays against us.";
    uci_rating_adv = "UCI_RatingAdv", spin(-10000 10000) 0, "Told by GUIs: our rating advantage.";
    uci_limit_strength = "UCI_LimitStrength", check() false, "Play at the strength of UCI_Elo: fewer nodes and a higher temperature.";
    uci_elo = "UCI_Elo", spin(500 3000) 1500, "Strength to play at with UCI_LimitStrength.";
    verbose_move_stats = "VerboseMoveStats", check() false, "Before the best move, print visits, prior and values of every root move.";
    log_file = "LogFile", text() "", "Write what is read and printed to this file.";
    seed = "Seed", spin(0 9223372036854775807) 0, "Seed of noise and temperature; 0 = another one every time.";

    cpuct = "CPuct", float(0.0 100.0) 1.745, "Exploration: cpuct(N) = CPuct + CPuctFactor ln((N + CPuctBase) / CPuctBase).";
    cpuct_base = "CPuctBase", float(1.0 1000000000.0) 38739.0, "See CPuct.";
    cpuct_factor = "CPuctFactor", float(0.0 1000.0) 3.894, "See CPuct.";
    root_has_own_cpuct_params = "RootHasOwnCpuctParams", check() false, "Use the AtRoot values of CPuct at the root.";
    cpuct_at_root = "CPuctAtRoot", float(0.0 100.0) 1.745, "CPuct at the root.";
    cpuct_base_at_root = "CPuctBaseAtRoot", float(1.0 1000000000.0) 38739.0, "CPuctBase at the root.";
    cpuct_factor_at_root = "CPuctFactorAtRoot", float(0.0 1000.0) 3.894, "CPuctFactor at the root.";
    fpu_strategy = "FpuStrategy", combo("reduction" "absolute") "reduction", "Value of unvisited moves: the parent's less FpuValue times the root of the visited policy, or FpuValue itself.";
    fpu_value = "FpuValue", float(-100.0 100.0) 0.330, "See FpuStrategy.";
    fpu_strategy_at_root = "FpuStrategyAtRoot", combo("same" "reduction" "absolute") "same", "FpuStrategy at the root.";
    fpu_value_at_root = "FpuValueAtRoot", float(-100.0 100.0) 1.0, "FpuValue at the root, unless FpuStrategyAtRoot is same.";
    policy_temperature = "PolicyTemperature", float(0.1 10.0) 1.359, "Priors are softmax(logits / this).";
    draw_score = "DrawScore", float(-1.0 1.0) 0.0, "What a draw is worth, from the side to move at the root.";
    two_fold_draws = "TwoFoldDraws", check() true, "Inside the tree a second occurrence counts as a draw.";
    sticky_endgames = "StickyEndgames", check() true, "Proven results propagate to the parents.";
    moves_left_max_effect = "MovesLeftMaxEffect", float(0.0 1.0) 0.0345, "Most that the moves-left head can add to a move's score.";
    moves_left_threshold = "MovesLeftThreshold", float(0.0 1.0) 0.8, "|Q| above which moves left count.";
    moves_left_slope = "MovesLeftSlope", float(0.0 1.0) 0.0027, "Effect of one ply.";
    moves_left_constant_factor = "MovesLeftConstantFactor", float(-1.0 1.0) 0.0, "Constant part of the scaling by Q.";
    moves_left_scaled_factor = "MovesLeftScaledFactor", float(-2.0 2.0) 1.6521, "Linear part of the scaling by Q.";
    moves_left_quadratic_factor = "MovesLeftQuadraticFactor", float(-1.0 1.0) -0.6521, "Quadratic part of the scaling by Q.";
    dirichlet_noise_epsilon = "DirichletNoiseEpsilon", float(0.0 1.0) 0.0, "Share of noise in the root's priors.";
    dirichlet_noise_alpha = "DirichletNoiseAlpha", float(0.0 10000000.0) 0.3, "Shape of the noise.";
    temperature = "Temperature", float(0.0 100.0) 0.0, "Choose the move by visits^(1/temperature); 0 = the best one.";
    temp_decay_moves = "TempDecayMoves", spin(0 640) 0, "Moves over which the temperature falls to 0.";
    temp_decay_delay_moves = "TempDecayDelayMoves", spin(0 100) 0, "Moves before it begins to fall.";
    temp_cutoff_move = "TempCutoffMove", spin(0 1000) 0, "Move from which TempEndgame holds; 0 = never.";
    temp_endgame = "TempEndgame", float(0.0 100.0) 0.0, "Temperature from TempCutoffMove on.";
    temp_value_cutoff = "TempValueCutoff", float(0.0 100.0) 100.0, "Moves whose win chance is this many per cent below the best are not chosen.";
    temp_visit_offset = "TempVisitOffset", float(-1000.0 1000.0) 0.0, "Added to visits before the temperature.";
    max_collision_events = "MaxCollisionEvents", spin(1 65536) 917, "Collisions that end the gathering of a minibatch.";
    max_collision_visits = "MaxCollisionVisits", spin(1 100000000) 80000, "Visits lost to collisions that end it, in a large tree.";
    max_collision_visits_scaling_start = "MaxCollisionVisitsScalingStart", spin(1 100000) 28, "Tree size up to which one collision ends it.";
    max_collision_visits_scaling_end = "MaxCollisionVisitsScalingEnd", spin(0 100000000) 145000, "Tree size from which MaxCollisionVisits holds.";
    max_collision_visits_scaling_power = "MaxCollisionVisitsScalingPower", float(0.01 100.0) 1.25, "Shape of the growth in between.";
    out_of_order_eval = "OutOfOrderEval", check() true, "Back up cache hits and terminals at once while a minibatch is gathered.";
    max_out_of_order_evals_factor = "MaxOutOfOrderEvalsFactor", float(0.0 100.0) 2.4, "At most this many times the minibatch size.";
    smart_pruning_factor = "SmartPruningFactor", float(0.0 10.0) 1.33, "Stop when no other move can catch up even with this share more playouts; 0 = off.";
    smart_pruning_minimum_batches = "SmartPruningMinimumBatches", spin(0 10000) 0, "Minibatches before smart pruning may stop.";
    kld_gain_average_interval = "KLDGainAverageInterval", spin(1 10000000) 100, "Playouts between two looks at how much the visits' distribution changed.";
    minimum_kld_gain_per_node = "MinimumKLDGainPerNode", float(0.0 1.0) 0.0, "Stop when it changed less than this per node; 0 = off.";
    nodes_as_playouts = "NodesAsPlayouts", check() false, "Count only playouts of this search against go nodes, not visits kept from the last one.";
    score_type = "ScoreType", combo("centipawn" "centipawn_with_drawscore" "centipawn_2019" "centipawn_2018" "win_percentage" "Q" "W-L" "WDL_mu") "WDL_mu", "What score cp shows.";
}
